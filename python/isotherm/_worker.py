"""One point of a sweep, wherever it runs."""

from __future__ import annotations

import json
import os
from functools import lru_cache
from pathlib import Path

from isotherm import _native

#: Workers keep the plans of so many experiments, with what they found out about their traces.
_PLANS = 4


def planned(path: str, text: str, files: tuple[tuple[str, str], ...]) -> _native.Points:
    """The points of the experiment in `text`; `files` says where local traces lie."""
    stats = [os.stat(file) for _, file in files]
    return _planned(path, text, files, tuple((stat.st_mtime_ns, stat.st_size, stat.st_ino) for stat in stats))


@lru_cache(maxsize=_PLANS)
def _planned(
    path: str, text: str, files: tuple[tuple[str, str], ...], as_they_are: tuple[tuple[int, int, int], ...]
) -> _native.Points:
    copies = dict(files)
    points = _native.Points(path, text, program(), copies)
    remote = [name for name in points.traces() if "://" in name]
    if remote:
        from isotherm._remote import fetched

        copies.update({name: fetched(name) for name in remote})
        points = _native.Points(path, text, program(), copies)
    return points


def copies_of(points: _native.Points, files: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """Where this process reads traces from."""
    copies = dict(files)
    for name in points.traces():
        if "://" in name:
            from isotherm._remote import fetched

            copies[name] = fetched(name)
    return copies


def program() -> str:
    """The file that stands for the program in the identity of a point."""
    path = _native.__file__
    assert isinstance(path, str)
    return path


def finished(path: Path, identity: str) -> bool:
    """Whether a point's file is whole and its own, and holds a result. A point that could not run is tried again."""
    try:
        point = json.loads(path.read_text(encoding="utf-8"))
        return bool(point["identity"] == identity and "skipped" not in point)
    except (OSError, ValueError, KeyError):
        return False


def compute(
    path: str, text: str, files: tuple[tuple[str, str], ...], at: int, identity: str, folder: str
) -> tuple[int, str | None]:
    """Compute point `at`, a pure function of its identity.

    Where the folder of the sweep can be reached, the result is written there, whole or not at all; where it cannot, the text of
    its file is given back.
    """
    from isotherm._remote import write_whole

    points = planned(path, text, files)
    own, name = points.identity(at)
    if own != identity:
        raise RuntimeError(
            f"point {at}: this worker has another isotherm, or another trace under the same name; install the same wheel "
            f"everywhere, and give all the same files\nasked: {identity}\nhere: {own}"
        )
    place = Path(folder) / "points"
    if finished(place / name, identity):
        return at, None
    result = points.run(at)
    if place.is_dir():
        write_whole(place / name, result)
        return at, None
    return at, result
