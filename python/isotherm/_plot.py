"""Charts by Altair: the same in notebooks and in saved files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isotherm._results import Result

#: Colours that are told apart in print and by people who see red and green alike.
_COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]


class Plot:
    """Charts of runs. Each method returns an Altair chart; ``chart.save("x.svg")`` (or ``.png``, ``.pdf``, ``.html``) needs no network."""

    def __init__(self, runs: Sequence[Result]) -> None:
        self._runs = list(runs)

    def write_amplification(self, *, last: bool = False) -> Any:
        """Bars of write amplification, best first.

        Parameters
        ----------
        last : bool, optional
            That of the last window (``measure_last``).
        """
        return self.bars("write_amplification_last" if last else "write_amplification", "write amplification")

    def bars(self, key: str, title: str | None = None) -> Any:
        """Bars of one number of each run.

        Parameters
        ----------
        key : str
            A dotted key of results, such as ``"erase_count.total"``.
        title : str, optional
            What the axis says. Default: the key.
        """
        alt = _altair()
        rows = [{"run": run.label, "value": run[key], "valid": "yes" if run.verdict else "no"} for run in self._runs]
        order = [row["run"] for row in sorted(rows, key=lambda row: (row["value"] is None, row["value"]))]
        base = alt.Chart(alt.Data(values=rows)).encode(y=alt.Y("run:N", sort=order, title=None, axis=alt.Axis(labelLimit=320)))
        bars = base.mark_bar(color=_COLOURS[0]).encode(
            x=alt.X("value:Q", title=title or key),
            opacity=alt.Opacity("valid:N", scale=alt.Scale(domain=["yes", "no"], range=[1.0, 0.45]), legend=None),
            tooltip=["run:N", "value:Q", "valid:N"],
        )
        words = base.mark_text(align="left", dx=4).encode(x="value:Q", text=alt.Text("value:Q", format=".3~f"))
        return _dressed(bars + words)

    def series(self, key: str = "write_amplification", title: str | None = None) -> Any:
        """Lines of one counter over time.

        Parameters
        ----------
        key : str
            A column of `Result.series`.
        title : str, optional
            What the axis says. Default: the key.
        """
        alt = _altair()
        rows = []
        for run in self._runs:
            table = run.series
            ends, values = table["host_pages_written"], table[key]
            rows += [{"run": run.label, "pages": end, "value": value} for end, value in zip(ends, values, strict=True)]
        chart = alt.Chart(alt.Data(values=rows)).mark_line().encode(
            x=alt.X("pages:Q", title="host pages written", axis=alt.Axis(format="~s")),
            y=alt.Y("value:Q", title=title or key, scale=alt.Scale(zero=False)),
            color=alt.Color("run:N", title=None, scale=alt.Scale(range=_COLOURS)),
            tooltip=["run:N", "pages:Q", "value:Q"],
        )
        return _dressed(chart)


def _altair() -> Any:
    try:
        import altair
    except ImportError:
        raise ImportError("charts need Altair; pip install 'isotherm[plot]'") from None
    return altair


def _dressed(chart: Any) -> Any:
    return chart.properties(width=480).configure_view(stroke=None).configure_axis(grid=True, gridColor="#e5e5e5")
