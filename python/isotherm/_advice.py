"""Advice: what to change about a workload and its drive."""

from __future__ import annotations

import html
import json
import os
from functools import cached_property
from pathlib import Path
from typing import Any

from isotherm import _native
from isotherm._results import View


class Advice:
    """What each change would do, which one to make, and why it can be trusted.

    Attributes
    ----------
    rows : list of View
        Every change: the drive as it is first, what knows the future last. Each has ``what``, ``kind``, ``is_host``, ``is_drive``,
        ``write_amplification_bytes`` (bytes of flash for a byte of the host), ``life`` (``years`` and more), ``write_p999_ns``, ``price``,
        ``valid``, ``trust``, ``promise``, ``plan``.
    recommendation : str
        What the host should do, and what that does.
    others : list of str
        What else would help.
    best : View or None
        The row that the host should follow.
    plans, ranges, files, dropped : list of View
        Plans that rows name, ranges of addresses that live alike, files that write most, candidates that were not simulated in full.

    Notes
    -----
    ``to_dict()`` has all of it, as ``advice.json``.
    """

    def __init__(self, native: _native.Advice) -> None:
        self._native = native

    @cached_property
    def _data(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._native.json())
        return found

    def _views(self, key: str) -> list[View]:
        return [View(one) for one in self._data[key]]

    @property
    def rows(self) -> list[View]:
        """Every change, the drive as it is first."""
        return self._views("rows")

    @property
    def recommendation(self) -> str:
        """What the host should do, and what that does."""
        return str(self._data["recommendation"]["text"])

    @property
    def others(self) -> list[str]:
        """What else would help, a sentence each."""
        return list(self._data["recommendation"]["others"])

    @property
    def best(self) -> View | None:
        """The row that the host should follow; None where nothing that it can do helps."""
        row = self._data["recommendation"]["row"]
        return None if row is None else self.rows[row]

    @property
    def plans(self) -> list[View]:
        """Plans, in which the host tags its writes with handles."""
        return self._views("plans")

    @property
    def ranges(self) -> list[View]:
        """Ranges of addresses that live alike."""
        return self._views("ranges")

    @property
    def files(self) -> list[View]:
        """The files that write most, where a map of them was given."""
        return self._views("files")

    @property
    def dropped(self) -> list[View]:
        """Candidates that were dropped, each with its reason."""
        return self._views("dropped")

    def to_dict(self) -> dict[str, Any]:
        """The whole as plain dictionaries and lists."""
        return self._data

    def to_json(self) -> str:
        """The whole as ``isotherm advise --json`` prints it."""
        return self._native.json()

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write the page: one HTML file that needs no network.

        Parameters
        ----------
        path : str or path
            Where it goes.
        """
        Path(path).write_text(self._native.html(), encoding="utf-8")

    def write(self, folder: str | os.PathLike[str]) -> None:
        """Write ``advice.json``, ``advice.html`` and what each plan is exported to into a folder: all of it or nothing."""
        self._native.write(os.fspath(folder))

    def _cells(self) -> list[list[str]]:
        def cells(row: dict[str, Any]) -> list[str]:
            wa, years = row["write_amplification_bytes"], (row["life"] or {}).get("years")
            return [
                row["what"],
                "-" if wa is None else f"{wa:.2f}",
                "-" if years is None else f"{years:.1f}",
                row["trust"],
            ]

        return [cells(row) for row in self._data["rows"]]

    def __repr__(self) -> str:
        width = max(len(row[0]) for row in self._cells())
        rows = "\n".join(f"  {what:<{width}}  {wa:>6}  {years:>7}" for what, wa, years, _ in self._cells())
        head = f"  {'':<{width}}  {'WA':>6}  {'years':>7}"
        return f"<isotherm.Advice {self._data['trace']['name']}\n{head}\n{rows}\n{self.recommendation}\n>"

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in ["change", "write amplification", "life, years", "trust"])
        rows = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in self._cells())
        said = "".join(f"<p>{html.escape(text)}</p>" for text in [self.recommendation, *self.others])
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{said}"
