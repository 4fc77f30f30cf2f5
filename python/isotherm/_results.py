"""Results: what runs left behind, as attributes, tables, pages and citations."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from isotherm import _native

if TYPE_CHECKING:
    from isotherm._plot import Plot


class View:
    """An object of results: its keys are attributes, and items."""

    def __init__(self, data: dict[str, Any]) -> None:
        self._data = data

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_data":
            raise AttributeError(name)
        try:
            return _shown(self._data[name])
        except KeyError:
            raise AttributeError(f"results have no key {name!r} here; there are {', '.join(self._data)}") from None

    def __getitem__(self, name: str) -> Any:
        return _shown(self._data[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._data})

    def __eq__(self, other: object) -> bool:
        return self._data == (other._data if isinstance(other, View) else other)

    __hash__ = None  # type: ignore[assignment]

    def to_dict(self) -> dict[str, Any]:
        """The same as plain dictionaries and lists."""
        return self._data

    def __repr__(self) -> str:
        return repr(self._data)


def _shown(value: Any) -> Any:
    return View(value) if isinstance(value, dict) else value


@dataclass(frozen=True)
class Verdict:
    """Whether a run means something.

    Attributes
    ----------
    valid : bool
        Whether every test was passed. A verdict is true where it is.
    reasons : list of str
        Why not, each with what would mend it.
    data : dict
        All that the judgement says, as results have it.
    """

    valid: bool
    reasons: list[str]
    data: dict[str, Any]

    def __bool__(self) -> bool:
        return self.valid


class Result:
    """One run: every key of the results' schema is an attribute, with its unit in its name.

    Attributes
    ----------
    write_amplification : float or None
        Pages programmed for each page that the host wrote.
    host_pages_written, gc_pages_copied, gc_count : int
        Pages and victims.
    erase_count : View
        ``total``, ``min``, ``mean``, ``max`` over the blocks.
    latency_ns : View
        By operation: ``read``, ``write``, ``trim``, ``flush``, each with ``p50`` to ``p9999``, ``mean``, ``max``.
    verdict : Verdict
        Whether the run means something.
    series : Table
        Counters over time.

    Notes
    -----
    ``dir(result)`` lists all of them; ``schema/results-v1.schema.json`` describes them. ``result["erase_count.total"]`` takes a dotted
    key.
    """

    def __init__(self, native: _native.Results, at: int, traces: Sequence[_native.Trace] = ()) -> None:
        self._native = native
        self._at = at
        self._traces = list(traces)

    @cached_property
    def _data(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._native.run_json(self._at))
        return found

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return _shown(self._data[name])
        except KeyError:
            raise AttributeError(f"this run has no {name!r}; dir() lists what it has") from None

    def __getitem__(self, key: str) -> Any:
        value: Any = self._data
        for part in key.split("."):
            value = value[part]
        return _shown(value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._data})

    @property
    def label(self) -> str:
        """What tells this run from its neighbours."""
        return str(self._data["label"])

    @property
    def write_amplification(self) -> float:
        """Pages programmed for each page that the host wrote; NaN where it wrote none."""
        value = self._data["write_amplification"]
        return float("nan") if value is None else float(value)

    @property
    def host_pages_written(self) -> int:
        """Pages touched by host writes."""
        return int(self._data["host_pages_written"])

    @property
    def verdict(self) -> Verdict:
        """Whether the run means something, and if not, why."""
        data = self._data["verdict"]
        return Verdict(bool(data["valid"]), list(data["reasons"]), data)

    @property
    def series(self) -> _native.Table:
        """Counters over time, a row for each window: write amplification, collections, erases ..."""
        return self._native.series(self._at)

    def table(self) -> _native.Table:
        """The run as a table of one row."""
        return self._native.only(self._at).table()

    def to_dict(self) -> dict[str, Any]:
        """The run as results have it."""
        return self._data

    def to_json(self) -> str:
        """The run as ``isotherm run --json`` prints it."""
        return self._native.run_json(self._at)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write the report: one HTML file that needs no network.

        Parameters
        ----------
        path : str or path
            Where it goes.
        """
        Path(path).write_text(self._native.only(self._at).html(self._traces), encoding="utf-8")

    @property
    def plot(self) -> Plot:
        """Charts of this run (with the extra ``plot``)."""
        from isotherm._plot import Plot

        return Plot([self])

    def cite(self) -> str:
        """What to cite: the schemes used as BibTeX, isotherm, and what repeats the run.

        Returns
        -------
        str
            BibTeX; the entry of isotherm has the call, the version and a hash of specification and trace in its note.
        """
        from isotherm._cite import cite

        return cite([self], json.loads(self._native.json())["command"])

    def __reduce__(self) -> tuple[Any, ...]:
        # Without the traces that it was made from, which other processes need not have.
        return (_unpickled_run, (self._native.only(self._at).json(),))

    def _facts(self) -> list[tuple[str, str]]:
        data = self._data
        wa = data["write_amplification"]
        verdict = self.verdict
        return [
            ("write amplification", "-" if wa is None else f"{wa:.3f}"),
            ("host pages written", f"{data['host_pages_written']:,}"),
            ("victims", f"{data['gc_count']:,}"),
            ("erases", f"{data['erase_count']['total']:,}"),
            ("verdict", "valid" if verdict else "; ".join(verdict.reasons)),
        ]

    def __repr__(self) -> str:
        facts = "\n".join(f"  {name:<21}{value}" for name, value in self._facts())
        return f"<isotherm.Result {self.label}\n{facts}\n>"

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><th>{name}</th><td>{html.escape(value)}</td></tr>" for name, value in self._facts())
        return f"<table><caption>{html.escape(self.label)}</caption>{rows}</table>"


class Results(Sequence[Result]):
    """Runs, in the order of their rank or of their points.

    A sequence of `Result`; ``table()`` has a row for each.
    """

    def __init__(self, native: _native.Results, traces: Sequence[_native.Trace] = ()) -> None:
        self._native = native
        self._traces = list(traces)
        self._runs = [Result(native, at, traces) for at in range(len(native))]

    def __len__(self) -> int:
        return len(self._runs)

    @overload
    def __getitem__(self, at: int) -> Result: ...
    @overload
    def __getitem__(self, at: slice) -> list[Result]: ...
    def __getitem__(self, at: int | slice) -> Result | list[Result]:
        return self._runs[at]

    @cached_property
    def _file(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._native.json())
        return found

    @property
    def skipped(self) -> list[dict[str, str]]:
        """What was asked for and has no result: ``label`` and ``reason``."""
        found: list[dict[str, str]] = self._file.get("skipped", [])
        return found

    @property
    def replicates(self) -> list[dict[str, Any]]:
        """Runs that differ in their seed alone, taken together."""
        found: list[dict[str, Any]] = self._file.get("replicates", [])
        return found

    @property
    def hotness(self) -> list[dict[str, Any]]:
        """Measurements of hot data identification, for experiments that ask for these."""
        found: list[dict[str, Any]] = self._file.get("hotness", [])
        return found

    @property
    def published(self) -> list[dict[str, Any]]:
        """Published numbers with ours beside them, for experiments that name some."""
        found: list[dict[str, Any]] = self._file.get("experiment", {}).get("published", [])
        return found

    def table(self) -> _native.Table:
        """A row for each run, a column for each number, keys flattened with dots.

        Returns
        -------
        Table
            In Arrow's form: ``polars.DataFrame(t)``, ``pandas.DataFrame.from_arrow(t)``, ``pyarrow.table(t)``, or ``duckdb.sql("from t")``.
        """
        return self._native.table()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The table as a capsule, by Arrow's PyCapsule interface."""
        return self.table().__arrow_c_stream__(requested_schema)

    def to_json(self) -> str:
        """The whole as ``results.json``."""
        return self._native.json()

    def write(self, folder: str | os.PathLike[str], *, csv: bool = False, parquet: bool = False) -> None:
        """Write ``results.json`` into a folder, and the table as CSV and Parquet if asked to: all of it or nothing."""
        self._native.write(os.fspath(folder), csv, parquet)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write the report: one HTML file that needs no network."""
        Path(path).write_text(self._native.html(self._traces), encoding="utf-8")

    @property
    def plot(self) -> Plot:
        """Charts of the runs (with the extra ``plot``)."""
        from isotherm._plot import Plot

        return Plot(self._runs)

    def cite(self) -> str:
        """What to cite; see `Result.cite`."""
        from isotherm._cite import cite

        return cite(self._runs, self._file["command"])

    def __reduce__(self) -> tuple[Any, ...]:
        return (_unpickled, (self._native.json(),))

    def __repr__(self) -> str:
        lines = (f"  {run.write_amplification:8.3f}  {run.label}" for run in self._runs)
        return "<isotherm.Results: write amplification\n{}\n>".format("\n".join(lines))

    def _repr_html_(self) -> str:
        def row(run: Result) -> str:
            data = run._data
            cells = [run.label, f"{run.write_amplification:.3f}", f"{data['gc_count']:,}", f"{data['erase_count']['total']:,}"]
            cells.append("yes" if run.verdict else "no")
            return "".join(f"<td>{html.escape(cell)}</td>" for cell in cells)

        head = "".join(f"<th>{name}</th>" for name in ["run", "write amplification", "victims", "erases", "valid"])
        rows = "".join(f"<tr>{row(run)}</tr>" for run in self._runs)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _unpickled(text: str) -> Results:
    return Results(_native.Results.from_json(text))


def _unpickled_run(text: str) -> Result:
    return Result(_native.Results.from_json(text), 0)


def read_results(path: str | os.PathLike[str]) -> Results:
    """Read a ``results.json`` that the command line, `Results.write` or a sweep wrote.

    Parameters
    ----------
    path : str or path
        The file.
    """
    return Results(_native.Results.from_json(Path(path).read_text(encoding="utf-8")))
