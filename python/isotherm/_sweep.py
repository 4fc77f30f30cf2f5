"""Sweeps: the points of an experiment, on whatever executor there is."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import os
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

from isotherm import _native, _worker
from isotherm._progress import Progress
from isotherm._remote import write_whole
from isotherm._results import Results


class SweepInterrupted(_native.IsothermError):
    """A sweep that lost its workers. What is finished is kept: a call that can start workers goes on from there."""


def sweep(
    experiment: str | os.PathLike[str],
    *,
    executor: Executor | None = None,
    workers: int | None = None,
    folder: str | os.PathLike[str] | None = None,
    shard: str | None = None,
    resume: bool = True,
    progress: Progress = None,
) -> Results:
    """Run every point of an experiment file.

    Parameters
    ----------
    experiment : str or path
        The TOML file, as ``isotherm sweep`` takes it.
    executor : concurrent.futures.Executor, optional
        Where points run: a pool of processes or threads, ``dask_client.get_executor()``, or `isotherm.ray.RayExecutor`. Default: a pool of
        processes on this machine, started by forkserver (a script needs ``if __name__ == "__main__":`` then).
    workers : int, optional
        Processes of the default pool. Default: one for each core.
    folder : str or path, optional
        Where results go. Default: ``isotherm-out/NAME`` of the experiment. Workers that can reach it write there themselves.
    shard : str, optional
        ``"3/64"``: only the third of 64 shares, for job arrays; all of them go to one folder.
    resume : bool, optional
        Take points that are finished. With ``False`` all points run again.
    progress : callable or True, optional
        Called with the number of points that are there.

    Returns
    -------
    Results
        All points, in their order; of a share, what is there so far. Points that cannot run are in `Results.skipped`, with the reason, and are
        tried again by the next call.

    Raises
    ------
    SweepInterrupted
        Workers died. The same call goes on where it stopped; where they died as they began, the message says what to change.

    Notes
    -----
    A point is a pure function of its specification, its trace's content, its seed and the program. It writes its result whole or
    not at all. ``folder/dataset`` is a Parquet data set of a file for each share; ``folder/results.json`` has all that was asked.
    """
    path = os.fspath(experiment)
    text = Path(path).read_text(encoding="utf-8")
    target = Path(folder) if folder is not None else Path("isotherm-out") / Path(path).stem
    place = target / "points"
    place.mkdir(parents=True, exist_ok=True)
    local = _native.Points(path, text, _worker.program(), {})
    files = tuple(sorted((name, os.path.abspath(name)) for name in local.traces() if _is_file(name)))
    points = _worker.planned(path, text, files)
    identities = [points.identity(at) for at in range(len(points))]
    number, of = _share(shard)
    mine = [at for at in range(len(points)) if at % of == number - 1]
    if not resume:
        for at in mine:
            (place / identities[at][1]).unlink(missing_ok=True)
    missing = [at for at in mine if not _worker.finished(place / identities[at][1], identities[at][0])]
    if missing:
        own = executor is None
        pool = executor or _pool(min(workers or os.cpu_count() or 1, len(missing)))
        try:
            _run(pool, missing, (path, text, files), identities, place, len(mine), progress)
        finally:
            if own:
                pool.shutdown(wait=True, cancel_futures=True)
    command = f"isotherm.sweep({path!r})"
    copies = _worker.copies_of(points, files)
    found = _native.finish(path, text, _worker.program(), copies, str(target), f"{number}/{of}", command)
    return Results(found) if found is not None else _part(place, [identities[at][1] for at in mine], command)


def _run(
    pool: Executor,
    missing: list[int],
    plan: tuple[str, str, tuple[tuple[str, str], ...]],
    identities: list[tuple[str, str]],
    place: Path,
    wanted: int,
    progress: Progress,
) -> None:
    """Computes what is missing; results that workers could not write are written here."""
    folder = str(place.parent.absolute())
    pending: set[Future[Any]] = set()
    done = wanted - len(missing)
    tell = progress if callable(progress) else (lambda count: print(f"{count} of {wanted} points")) if progress else None
    if isinstance(pool, concurrent.futures.ProcessPoolExecutor):
        _wait_for_start(pool)
    try:
        for at in missing:
            pending.add(pool.submit(_worker.compute, *plan, at, identities[at][0], folder))
        while pending:
            finished, pending = concurrent.futures.wait(pending, return_when=concurrent.futures.FIRST_COMPLETED)
            for future in finished:
                at, result = future.result()
                if result is not None:
                    write_whole(place / identities[at][1], result)
                done += 1
                if tell:
                    tell(done)
    except concurrent.futures.BrokenExecutor as lost:
        there = sum(_worker.finished(place / name, identity) for identity, name in (identities[at] for at in missing))
        left = len(missing) - there
        raise SweepInterrupted(f"workers died; {left} points are still to run: the same call goes on with them") from lost
    except BaseException:
        # A pool whose workers died settles its calls itself, and does not bear their being cancelled.
        for future in pending:
            future.cancel()
        raise


def _wait_for_start(pool: Executor) -> None:
    """Waits until a worker does something: one that cannot begin dies in every further call too."""
    try:
        pool.submit(_worker.program).result()
    except concurrent.futures.BrokenExecutor as lost:
        raise SweepInterrupted(
            "workers died as they began; each of them imports the script anew, so that a script has to call sweep under "
            '`if __name__ == "__main__":`; or give executor=concurrent.futures.ThreadPoolExecutor()'
        ) from lost


def _pool(workers: int) -> Executor:
    """Processes that share nothing with this one: forking a process with threads hangs."""
    return concurrent.futures.ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("forkserver"))


def _is_file(name: str) -> bool:
    return not name.startswith("synth:") and "://" not in name


def _share(shard: str | None) -> tuple[int, int]:
    try:
        number, of = (int(part) for part in (shard or "1/1").split("/"))
        if 1 <= number <= of:
            return number, of
    except ValueError:
        pass
    raise ValueError(f"shard: {shard!r} is no share; write for example '3/64': '1/64' to '64/64' are all")


def _part(place: Path, names: list[str], command: str) -> Results:
    """The runs of a share by themselves."""
    import json

    points = [json.loads((place / name).read_text(encoding="utf-8")) for name in names]
    file = {
        "schema_version": 1,
        "version": _native.__version__,
        "command": command,
        "traces": [],
        "runs": [point["run"] for point in points if "run" in point],
        "hotness": [point["hotness"] for point in points if "hotness" in point],
        "skipped": [point["skipped"] for point in points if "skipped" in point],
    }
    return Results(_native.Results.from_json(json.dumps(file)))
