"""Sweeps on every executor give the same points, and lose nothing but the point of a worker that dies."""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import isotherm as iso
import pytest

EXPERIMENT = """
title = "A test"
[base]
device.over_provisioning = "20%"
device.pages_per_block = 32
[[traces]]
label = "zipf"
source = "synth:zipf,theta=0.99,pages=4096,writes={writes}"
[[traces]]
label = "file"
source = "trace.csv.zst"
[[axes]]
name = "placement"
values = [
    {{ label = "single", set = ["placement=single"] }},
    {{ label = "sepbit", set = ["placement=sepbit"] }},
    {{ label = "dac", set = ["placement=dac"] }},
]
[[axes]]
name = "seed"
values = [{seeds}]
"""


def experiment(folder: Path, *, seeds: int = 1, writes: int = 20_000) -> Path:
    iso.Trace(f"synth:uniform,pages=2048,writes={writes}").convert(folder / "trace.csv.zst", overwrite=True)
    values = ", ".join(f'{{ label = "{seed}", set = ["seed={seed}"] }}' for seed in range(1, seeds + 1))
    path = folder / "experiment.toml"
    path.write_text(EXPERIMENT.format(writes=writes, seeds=values))
    return path


def points(results: iso.Results) -> list[tuple[str, Any, Any]]:
    return [(run.label, run["pages_programmed"].to_dict(), run["erase_count"].to_dict()) for run in results]


class Counting(Executor):
    """Passes calls on, and counts them."""

    def __init__(self, inner: Executor) -> None:
        self.inner = inner
        self.calls = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.calls += 1
        return self.inner.submit(fn, *args, **kwargs)


def test_a_point_that_cannot_run_is_skipped_and_tried_again(tmp_path: Path) -> None:
    path = experiment(tmp_path)
    path.write_text(path.read_text().replace("placement=dac", "device.logical_size=1MiB"))
    with ThreadPoolExecutor(2) as executor:
        counting = Counting(executor)
        for calls in (6, 2):
            counting.calls = 0
            results = iso.sweep(path, executor=counting, folder=tmp_path / "out")
            assert counting.calls == calls
            assert len(results) == 4
            assert sorted(skipped["label"] for skipped in results.skipped) == ["file, dac, 1", "zipf, dac, 1"]
        part = iso.sweep(path, executor=executor, folder=tmp_path / "part", shard="1/4")
        assert len(part) + len(part.skipped) == 2
        path.write_text(path.read_text().replace('["placement=', '["device.logical_size=1MiB", "placement='))
        with pytest.raises(ValueError, match=r"no point can run; the first, zipf, single, 1: .*logical_size"):
            iso.sweep(path, executor=executor, folder=tmp_path / "nothing")


def test_a_sweep_is_the_command_lines_whoever_runs_it(tmp_path: Path) -> None:
    import duckdb
    import polars as pl

    path = experiment(tmp_path)
    subprocess.run(
        [sys.executable, "-m", "isotherm", "sweep", str(path), "--out", str(tmp_path / "there")], check=True, capture_output=True
    )
    there = iso.read_results(tmp_path / "there" / "results.json")
    assert len(there) == 6
    here = iso.sweep(path, workers=2, folder=tmp_path / "here")
    assert points(here) == points(there)
    with ThreadPoolExecutor(2) as threads:
        assert points(iso.sweep(path, executor=threads, folder=tmp_path / "threads")) == points(there)
    for folder in ["there", "here"]:
        dataset = f"{tmp_path / folder}/dataset/*.parquet"
        assert duckdb.sql(f"select count(*) from read_parquet('{dataset}', union_by_name=true)").fetchall() == [(6,)]
        frame = pl.read_parquet(dataset)
        assert sorted(frame["label"]) == sorted(run.label for run in there)
    assert (tmp_path / "here" / "report.html").stat().st_size > 10_000
    # What is finished is taken; a trace that has changed is not.
    with ThreadPoolExecutor(1) as threads:
        counting = Counting(threads)
        iso.sweep(path, executor=counting, folder=tmp_path / "here")
        assert counting.calls == 0
        iso.Trace("synth:uniform,pages=2048,writes=9999").convert(tmp_path / "trace.csv.zst", overwrite=True)
        assert points(iso.sweep(path, executor=counting, folder=tmp_path / "here")) != points(there)
        assert counting.calls == 3
        iso.sweep(path, executor=counting, folder=tmp_path / "here", resume=False)
        assert counting.calls == 9


def test_shares_from_python_and_the_command_line_make_one_whole(tmp_path: Path) -> None:
    path = experiment(tmp_path)
    whole = points(iso.sweep(path, workers=1, folder=tmp_path / "whole"))
    for number in (1, 2, 3):
        part = iso.sweep(path, workers=1, folder=tmp_path / "parts", shard=f"{number}/3")
        assert len(part) == (6 if number == 3 else 2)
    assert points(part) == whole
    assert len(list((tmp_path / "parts" / "dataset").iterdir())) == 3
    words = [sys.executable, "-m", "isotherm", "sweep", str(path), "--out", str(tmp_path / "shares"), "--shard"]
    said = [subprocess.run([*words, f"{n}/2"], check=True, capture_output=True, text=True).stdout for n in (2, 1)]
    assert "others are not yet" in said[0] and "report.html" in said[1]
    assert points(iso.read_results(tmp_path / "shares" / "results.json")) == whole
    assert len(list((tmp_path / "shares" / "dataset").iterdir())) == 2
    wrong = subprocess.run([*words, "3/2"], capture_output=True, text=True)
    assert wrong.returncode == 2 and "3/64" in wrong.stderr


def test_killed_workers_lose_only_their_point(tmp_path: Path) -> None:
    path = experiment(tmp_path, seeds=8, writes=60_000)
    folder = tmp_path / "out"
    draw = random.Random(4)
    computed: dict[str, int] = {}
    for _ in range(60):
        pool = ProcessPoolExecutor(2, mp_context=get_context("forkserver"))
        before = {entry.name for entry in (folder / "points").glob("*.json")} if folder.exists() else set()
        counting = Counting(pool)
        after = draw.randrange(2, 8)

        def kill(count: int, pool: ProcessPoolExecutor = pool, after: int = after, before: int = len(before)) -> None:
            if count >= before + after:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(draw.choice(list(pool._processes)), signal.SIGKILL)

        try:
            results = iso.sweep(path, executor=counting, folder=folder, progress=kill)
        except iso.SweepInterrupted as lost:
            assert "the same call goes on" in str(lost)
        finally:
            pool.shutdown(wait=True)
        assert counting.calls == 48 - len(before), "what is there is not asked for again"
        for name in {entry.name for entry in (folder / "points").glob("*.json")} - before:
            computed[name] = computed.get(name, 0) + 1
        if len(computed) == 48:
            break
    results = iso.sweep(path, workers=1, folder=folder)
    assert len(results) == 48 and len(computed) == 48
    assert set(computed.values()) == {1}
    assert points(results) == points(iso.sweep(path, workers=2, folder=tmp_path / "undisturbed"))


def test_a_script_that_sweeps_while_workers_import_it_is_told_so(tmp_path: Path) -> None:
    """Neither the traceback of a worker nor the advice to call again says what is wrong."""
    path = experiment(tmp_path)
    script = tmp_path / "script.py"
    call = f"iso.sweep({os.fspath(path)!r}, folder={os.fspath(tmp_path / 'out')!r}, workers=2)"
    script.write_text(f"import isotherm as iso\n{call}\n")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode != 0
    last = done.stderr.strip().splitlines()[-1]
    assert "SweepInterrupted" in last and '`if __name__ == "__main__":`' in last, done.stderr
    script.write_text(f'import isotherm as iso\nif __name__ == "__main__":\n    {call}\n')
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def test_a_worker_with_another_trace_refuses(tmp_path: Path) -> None:
    from isotherm import _worker

    path = experiment(tmp_path)
    text = path.read_text()
    files = ((str(tmp_path / "trace.csv.zst"), str(tmp_path / "trace.csv.zst")),)
    with pytest.raises(RuntimeError, match="another trace under the same name"):
        _worker.compute(str(path), text, files, 3, "identity of another", str(tmp_path))
    # Where the folder cannot be reached, the result comes back.
    identity, name = _worker.planned(str(path), text, files).identity(0)
    at, result = _worker.compute(str(path), text, files, 0, identity, str(tmp_path / "nowhere"))
    assert at == 0 and result is not None and json.loads(result)["identity"] == identity


def test_traces_come_from_object_stores_once(tmp_path: Path) -> None:
    import fsspec

    store: Any = fsspec.filesystem("memory")
    iso.Trace("synth:uniform,pages=2048,writes=20000").convert(tmp_path / "local.csv.zst")
    store.pipe("/bucket/trace.csv.zst", (tmp_path / "local.csv.zst").read_bytes())
    url = "memory://bucket/trace.csv.zst"
    far, near = iso.run(url), iso.run(tmp_path / "local.csv.zst")
    assert far["pages_programmed"] == near["pages_programmed"] and far.trace == url
    copies = list((tmp_path / "cache" / "traces").iterdir())
    iso.Trace(url).info()
    assert list((tmp_path / "cache" / "traces").iterdir()) == copies and len(copies) == 1
    path = tmp_path / "far.toml"
    path.write_text(f'title = "far"\n[[traces]]\nlabel = "far"\nsource = "{url}"\n')
    with ThreadPoolExecutor(1) as threads:
        results = iso.sweep(path, executor=threads, folder=tmp_path / "far")
    assert results[0]["pages_programmed"] == near["pages_programmed"]


def test_dask_runs_a_sweep_on_several_workers(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    path = experiment(tmp_path, seeds=2)
    expected = points(iso.sweep(path, workers=1, folder=tmp_path / "here"))
    with (
        distributed.LocalCluster(n_workers=3, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        assert points(iso.sweep(path, executor=client.get_executor(), folder=tmp_path / "dask")) == expected
        assert len(client.scheduler_info(n_workers=-1)["workers"]) == 3


def test_ray_runs_a_sweep_on_several_workers(tmp_path: Path) -> None:
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    from isotherm.ray import RayExecutor

    path = experiment(tmp_path, seeds=2)
    expected = points(iso.sweep(path, workers=1, folder=tmp_path / "here"))
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=100 << 20)
    try:
        executor = RayExecutor(num_cpus=1)
        assert points(iso.sweep(path, executor=executor, folder=tmp_path / "ray")) == expected
        # What a call raises comes out of it; a worker that dies breaks the executor.
        with pytest.raises(ZeroDivisionError):
            executor.submit(lambda: 1 // 0).result(timeout=60)
        with pytest.raises(concurrent.futures.BrokenExecutor):
            executor.submit(os._exit, 1).result(timeout=60)
    finally:
        ray.shutdown()


def test_time_of_a_point_is_its_own(tmp_path: Path) -> None:
    began = time.monotonic()
    results = iso.sweep(experiment(tmp_path), workers=1, folder=tmp_path / "out")
    assert sum(run.simulator_elapsed_ns for run in results) < (time.monotonic() - began) * 1e9
