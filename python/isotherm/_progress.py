"""Progress for people: a line that is written over, in terminals and notebooks."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

Progress = Callable[[int], object] | bool | None


def progress_of(progress: Progress) -> Callable[[int], object] | None:
    """What is called with the host pages that are done: a function as it is, a line for ``True``."""
    if progress is True:
        return _Line()
    return progress or None


class _Line:
    """Shows how many host pages are done."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._display = _notebook_display()

    def __call__(self, pages: int) -> None:
        rate = pages / max(time.monotonic() - self._began, 1e-3)
        text = f"{pages / 1e6:,.2f} M host pages, {rate / 1e6:.2f} M/s"
        if self._display is not None:
            self._display(text)
        elif sys.stderr.isatty():
            print(f"\r{text}", end="", file=sys.stderr, flush=True)


def _notebook_display() -> Callable[[str], object] | None:
    if "IPython" not in sys.modules:
        return None
    from IPython import display, get_ipython

    if get_ipython() is None or get_ipython().__class__.__name__ == "TerminalInteractiveShell":
        return None
    shown = display.display(display.Pretty(""), display_id=True)
    return lambda text: shown.update(display.Pretty(text))
