"""The same counters from Python, from the command line and from whatever way requests come in."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import isotherm as iso
import numpy as np
import pytest
from schemes import ByAge, Emptiest, Epoch, HostGc

ZIPF = "synth:zipf,theta=0.99,pages=16Ki,writes=120000,seed=3"


def counters(data: Any) -> Any:
    """What two runs that are the same agree in: all but times of this machine."""
    if isinstance(data, list):
        return [counters(value) for value in data]
    if isinstance(data, dict):
        return {key: counters(value) for key, value in data.items() if not key.startswith(("simulator_", "ns_per"))}
    return data


def command(*words: str) -> dict[str, Any]:
    done = subprocess.run([sys.executable, "-m", "isotherm", *words], capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


MATRIX: list[tuple[str, dict[str, Any]]] = [
    (ZIPF, {}),
    (ZIPF, {"placement": "sepbit", "victim": "cost_benefit", "op": 0.15}),
    (ZIPF, {"ftl": "dftl", "cache_bytes": "64KiB", "placement": "epoch:length=1"}),
    (ZIPF, {"ftl": "fast", "spare": "10%"}),
    (ZIPF, {"log": "sfs:segment=256KiB", "below": "page", "utilisation": "80%"}),
    (ZIPF, {"dram": "1MiB", "buffer": "bplru", "victim": "fifo"}),
    (ZIPF, {"precondition": "random", "measure_last": 50_000, "placement": "dac"}),
    ("synth:uniform,pages=8Ki,writes=60000", {"placement": "offline", "seed": 7}),
    ("sqlite-wal-ext4.csv.zst", {"address": "compact", "repeat": 2, "placement": "mdc", "victim": "mdc"}),
    ("tpcc-postgres-xfs.csv.zst", {"address": "compact", "preset": "slc", "timing": None}),
]


@pytest.mark.parametrize(("trace", "options"), MATRIX)
def test_python_counts_what_the_command_line_counts(trace: str, options: dict[str, Any], captures: Path) -> None:
    options = {key: value for key, value in options.items() if value is not None and key != "preset"}
    source = trace if trace.startswith("synth:") else str(captures / trace)
    words = [word for key, value in options.items() for word in (f"--{key.replace('_', '-')}", str(value))]
    seed = options.pop("seed", 1)
    result = iso.run(source, seed=seed, **options)
    assert counters(result.to_dict()) == counters(command("run", source, *words, "--json"))


def test_a_comparison_is_the_command_lines(tmp_path: Path, captures: Path) -> None:
    source = str(captures / "rocksdb-overwrite-xfs.csv.zst")
    words = "--placement single,sepbit --victim greedy,fifo --op 7%,28% --address compact --json --out".split()
    there = command("compare", source, *words, str(tmp_path / "out"))
    here = iso.compare(source, placement=["single", "sepbit"], victim=["greedy", "fifo"], op=[0.07, 0.28], address="compact")
    assert [counters(run.to_dict()) for run in here] == [counters(run) for run in there["runs"]]
    assert len(here) == 8
    seeded = iso.compare(ZIPF, placement="single", seeds=3)
    assert len(seeded) == 3 and len(seeded.replicates) == 1


def test_arrays_tables_files_and_steps_are_one_workload(tmp_path: Path) -> None:
    import polars as pl
    import pyarrow as pa

    random = np.random.default_rng(5)
    count = 150_000
    pages = (random.zipf(1.3, count) * 7919) % 4096
    ops = random.choice(np.array([0, 1, 2], np.uint8), count, p=[0.2, 0.77, 0.03])
    lengths = random.integers(1, 5, count) * 4096
    times = np.sort(random.integers(0, 10**9, count))
    arrays = iso.Trace.from_arrays(pages * 4096, lengths, ops, times)
    columns = {"offset": pages * 4096, "length": lengths, "op": ops, "time": times}
    # Chunks in Arrow that do not lie where a pass reads.
    table = pa.concat_tables([pa.table(columns)[:1000], pa.table(columns)[1000:]])
    options: dict[str, Any] = {"op": 0.15, "logical_size": "20MiB", "placement": "sepbit"}
    expected = counters(iso.run(arrays, **options).to_dict())
    arrays.convert(tmp_path / "trace.csv.zst")
    for trace in [iso.Trace(table), iso.Trace(pl.DataFrame(columns)), iso.Trace(tmp_path / "trace.csv.zst", keep_leading_trim=True), iso.Trace(pa.table(arrays))]:
        found = counters(iso.run(trace, **options).to_dict())
        assert {**found, "trace": ""} == {**expected, "trace": ""}
    device = iso.Device(**options)
    for part in np.array_split(np.arange(count), 7):
        device.submit(pages[part] * 4096, lengths[part], ops[part], times[part])
    device.check()
    stepped = device.snapshot().to_dict()
    for key in ["pages_programmed", "pages_read", "erase_count", "gc_count", "host_pages_trimmed", "host_requests"]:
        assert stepped[key] == expected[key], key
    assert device.blocks()["valid"].sum() > 0
    assert device.capacity_bytes == 20 << 20


def test_a_device_counts_anew_from_where_it_is_told() -> None:
    random = np.random.default_rng(2)
    device = iso.Device(logical_size="16MiB", op=0.1)
    device.submit(np.arange(4096) * 4096, 4096)
    device.submit(random.integers(0, 4096, 60_000) * 4096, 4096)
    whole = device.snapshot()
    assert whole.verdict.valid and "the filling of an empty device" in str(whole["verdict.first_replay"])
    device.reset_stats()
    device.submit(random.integers(0, 4096, 20_000) * 4096, 4096)
    rest = device.snapshot()
    assert (rest["host_requests"], rest["host_pages_written"]) == (20_000, 20_000)
    assert rest.write_amplification > whole.write_amplification
    assert rest["latency_ns.write.count"] == 20_000
    assert rest.verdict.valid and rest["verdict.first_replay"] is None


@pytest.mark.parametrize("rest", [{}, {"ftl": "dftl"}, {"dram": "1MiB", "buffer": "bplru"}, {"victim": "cost_benefit"}])
def test_schemes_in_python_count_what_their_built_in_counts(rest: dict[str, Any]) -> None:
    trace = "synth:zipf,theta=1.1,pages=16Ki,writes=100000" if "dram" not in rest else "synth:zipf,theta=1.1,pages=4Ki,writes=20000"
    for own, name in [(HostGc, "host_gc"), (Epoch, "epoch")]:
        ours, built_in = iso.run(trace, placement=own, **rest), iso.run(trace, placement=name, **rest)
        same = {"label", "spec", "dram_bytes", "dram_parts_bytes", "device"}
        differing = [k for k, v in counters(ours.to_dict()).items() if v != built_in.to_dict()[k] and k not in same]
        assert not differing
        assert ours["device.logical_pages"] == built_in["device.logical_pages"]


def test_schemes_in_python_count_the_same_under_trims(captures: Path) -> None:
    # A capture with reads, trims, flushes and unaligned writes.
    source = str(captures / "rocksdb-overwrite-xfs.csv.zst")
    ours, built_in = (iso.run(source, placement=p, address="compact", op=0.1) for p in (Epoch, "epoch"))
    assert ours.host_pages_trimmed > 0
    assert ours["pages_programmed"] == built_in["pages_programmed"]
    assert ours["erase_count"] == built_in["erase_count"]


def test_own_policies_stand_in_a_comparison_beside_others() -> None:
    runs = iso.compare(ZIPF, placement=["single", Epoch, ByAge, "epoch"], victim=["greedy", Emptiest])
    assert len(runs) == 8
    by = {(run.axes["placement"], run.axes["victim"]): run for run in runs}
    for victim in ["greedy", "Emptiest"]:
        assert by["Epoch", victim]["pages_programmed"] == by["epoch", victim]["pages_programmed"]
    assert by["ByAge", "greedy"].write_amplification != by["single", "greedy"].write_amplification
    ratio = by["single", "Emptiest"].write_amplification / by["single", "greedy"].write_amplification
    assert 0.95 < ratio < 1.05


def test_a_conforming_policy_passes_and_others_do_not() -> None:
    runs = iso.check(Epoch)
    assert set(runs) == {"uniform", "mixed"} and all(run.verdict.valid for run in runs.values())
    iso.check(Emptiest)

    class Chance(iso.Placement):
        """Decides by chance, anew in each run."""

        streams = 2

        def host(self, lpns: Any, last_writes: Any, now: Any) -> Any:
            return np.random.default_rng().integers(0, 2, len(lpns))

    class Scatter(iso.Placement):
        """Tells apart what is the same, into more open blocks than the spare space bears."""

        streams = 128

        def host(self, lpns: Any, last_writes: Any, now: Any) -> Any:
            return lpns % 128

    with pytest.raises(AssertionError, match="two runs differ"):
        iso.check(Chance)
    with pytest.raises(AssertionError, match="uniform traffic costs"):
        iso.check(Scatter)


def test_hotness_and_validation_say_what_the_command_line_says() -> None:
    there = command("hotness", ZIPF, "--scheme", "mbf,dam", "--json")
    assert counters(iso.hotness(ZIPF, ["mbf", "dam"])) == counters(there)
