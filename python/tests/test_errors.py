"""Whatever goes wrong is a Python exception that names the argument: no abort, no deadlock, nothing leaked."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import isotherm as iso
import numpy as np
import pytest
from schemes import Ints

PAGES = np.arange(1000, dtype=np.int64) % 64
FOREVER = "synth:uniform,pages=4096,writes=1000000000000"


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"offset": PAGES * 4096.0}, TypeError, "offset: an array of float64 is no array of integers"),
        ({"offset": [1, 2]}, TypeError, "offset: list is no array"),
        ({"offset": 5}, ValueError, "offset: one number is no array"),
        ({"offset": PAGES.reshape(10, 100)}, ValueError, "offset: the array has 2 dimensions"),
        ({"offset": PAGES[::2]}, ValueError, "offset: the values do not lie side by side"),
        ({"offset": np.array([0, -5])}, ValueError, r"offset\[1\]: -5 is negative"),
        ({"offset": PAGES[:0]}, ValueError, "offset: there are no requests"),
        ({"offset": np.array([1 << 60])}, ValueError, r"offset\[0\]: .* beyond 4 PiB"),
        ({"length": np.ones(999, np.int64)}, ValueError, "length: 999 values, but offset has 1000"),
        ({"length": 0}, ValueError, r"length\[0\]: 0 bytes"),
        ({"length": -1}, ValueError, r"length\[0\]: -1 bytes"),
        ({"length": 1 << 40}, ValueError, r"length\[0\]: .* too many"),
        ({"op": np.full(1000, 9, np.uint8)}, ValueError, r"op\[0\]: 9 is no operation"),
        ({"op": np.array(["W"] * 1000)}, TypeError, "op: an array of <U1"),
        ({"time": np.arange(1000)[::-1].copy()}, ValueError, r"time\[1\]: 998 ns comes after 999 ns"),
        ({"time": PAGES.astype(bool)}, TypeError, "time: an array of bool"),
        ({"time": np.full(1000, 1 << 63, np.uint64)}, ValueError, r"time\[0\]: 9223372036854775808 ns are too many"),
        ({"offset": np.array([1 << 63], np.uint64)}, ValueError, r"offset\[0\]: 9223372036854775808 lies beyond 4 PiB"),
        ({"length": np.full(1000, 1 << 63, np.uint64)}, ValueError, r"length\[0\]: 9223372036854775808 bytes are too many"),
        ({"length": 1 << 64}, ValueError, "length: 18446744073709551616 is out of range"),
        ({"offset": (PAGES * 4096).astype(">u4")}, TypeError, "offset: the array has the other byte order; give offset.astype"),
        ({"length": np.full(1000, 4096, ">i8")}, TypeError, "length: the array has the other byte order"),
        ({"op": np.ones(1000, ">u2")}, TypeError, "op: the array has the other byte order"),
        ({"time": np.zeros(1000, ">u8")}, TypeError, "time: the array has the other byte order"),
        ({"offset": np.ma.masked_equal(PAGES * 4096, 0)}, TypeError, "offset: a masked array .* offset.compressed"),
    ],
)
def test_wrong_arrays_name_the_argument(arguments: dict[str, Any], error: type[Exception], words: str) -> None:
    whole = {"offset": PAGES * 4096, "length": 4096, **arguments}
    with pytest.raises(error, match=words):
        iso.Trace.from_arrays(**whole)
    with pytest.raises(error, match=words):
        iso.Device(logical_size="1MiB").submit(**whole)


def test_wrong_tables_name_the_column() -> None:
    import pyarrow as pa

    with pytest.raises(ValueError, match="length: the table has no such column"):
        iso.Trace(pa.table({"offset": [0, 4096]}))
    with pytest.raises(TypeError, match="offset: a column of Float64"):
        iso.Trace(pa.table({"offset": [0.5], "length": [1]}))
    with pytest.raises(ValueError, match="offset: 1 values are missing"):
        iso.Trace(pa.table({"offset": [None, 1], "length": [1, 1]}))
    with pytest.raises(TypeError, match="source: a int is no trace"):
        iso.Trace(3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"opp": 0.07}, "opp: unknown key; did you mean op"),
        ({"op": -3}, r"device.over_provisioning \(op=\).*allowed"),
        ({"placement": "lifo"}, 'unknown name "lifo"; choose from single'),
        ({"placement": "epoch:colour=1"}, "unknown parameter"),
        ({"victim": "external"}, "a program brings along"),
        ({"op": 0.1, "spare": 0.1}, "the same in two ways"),
        ({"repeat": 0}, r"replay.repeat \(repeat=\)"),
        ({"logical_size": "1MiB", "measure_last": 9}, r"the trace needs .* device.logical_size \(logical_size=\)"),
    ],
)
def test_wrong_keywords_say_what_would_be_right(options: dict[str, Any], words: str) -> None:
    with pytest.raises(iso.SpecError, match=words):
        iso.run("synth:uniform,pages=4096,writes=100", **options)


@pytest.mark.parametrize("seed", [-1, 1 << 64])
def test_a_seed_out_of_range_is_named(seed: int) -> None:
    trace = "synth:uniform,pages=4096,writes=100"
    calls: list[Callable[[], object]] = [
        lambda: iso.run(trace, seed=seed),
        lambda: iso.compare(trace, seed=seed),
        lambda: iso.advise(trace, seed=seed),
        lambda: iso.Device(logical_size="1MiB", seed=seed),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=f"seed: {seed} is out of range"):
            call()


def test_what_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no-such"):
        iso.Trace("no-such.csv")
    (tmp_path / "text.csv").write_text("this is no trace\n" * 10)
    with pytest.raises(iso.TraceError, match="text.csv"):
        iso.run(tmp_path / "text.csv")
    with pytest.raises(iso.SpecError, match="synth"):
        iso.Trace("synth:nothing")
    with pytest.raises(TypeError, match="colour"):
        iso.Trace("synth:uniform", colour=1)
    with pytest.raises(iso.DeviceError, match="reach past the device"):
        iso.Device(logical_size="1MiB").submit(np.array([1 << 21]), 4096)
    with pytest.raises(iso.SpecError, match=r"logical_size \(logical_size=\)"):
        iso.Device()
    with pytest.raises(AttributeError, match="no 'colour'"):
        _ = iso.run("synth:uniform,pages=256,writes=100").colour
    with pytest.raises(ValueError, match="share"):
        iso.sweep(_experiment(tmp_path), shard="4/3")


def _experiment(folder: Path) -> Path:
    path = folder / "e.toml"
    path.write_text('title = "t"\n[[traces]]\nlabel = "a"\nsource = "synth:uniform,pages=256,writes=100"\n')
    return path


def test_an_array_that_changes_during_a_run_is_named() -> None:
    offsets = np.zeros(200_000, np.int64)
    trace = iso.Trace.from_arrays(offsets, 4096)
    assert iso.run(trace, logical_size="1MiB").host_pages_written == 200_000
    offsets[150_000] = 4096
    with pytest.raises(iso.TraceError, match="offset: the array was changed"):
        iso.run(trace, logical_size="1MiB")
    offsets[150_000] = 0
    iso.run(trace, logical_size="1MiB")


class _Raises(iso.Placement):
    def host(self, lpns: Ints, last_writes: Ints, now: Ints) -> int:
        raise ZeroDivisionError("on purpose")


class _Wrong(iso.Placement):
    answer: Any = 0

    def host(self, lpns: Ints, last_writes: Ints, now: Ints) -> Any:
        return self.answer


def test_what_a_policy_raises_comes_out_as_it_is() -> None:
    trace = "synth:uniform,pages=4096,writes=20000"
    with pytest.raises(ZeroDivisionError, match="on purpose"):
        iso.run(trace, placement=_Raises)
    with pytest.raises(ZeroDivisionError, match="on purpose"):
        iso.compare(trace, placement=["single", _Raises])
    device = iso.Device(logical_size="16MiB", placement=_Raises)
    with pytest.raises(ZeroDivisionError):
        device.submit(PAGES * 4096, 4096)
    wrong = _Wrong()
    answers: list[tuple[Any, type[Exception], str]] = [
        (1, ValueError, "returned stream 1, but there are 1"),
        (-1, ValueError, "returned stream -1"),
        (0.5, TypeError, "returned float64"),
        (np.zeros(3, np.int64), ValueError, r"returned shape \(3,\)"),
        (None, TypeError, "returned object"),
    ]
    for answer, error, words in answers:
        wrong.answer = answer
        with pytest.raises(error, match=f"_Wrong.host: it {words}"):
            iso.run(trace, placement=wrong)

    class Twice(iso.VictimPolicy):
        def rank(self, blocks: iso.Blocks, now: int) -> Any:
            assert not blocks.valid.flags.writeable
            return np.repeat(blocks.block[:1], 2)

    with pytest.raises(ValueError, match="Twice.rank: it named a block twice"):
        iso.run(trace, victim=Twice)
    with pytest.raises(NotImplementedError, match="has to define rank"):
        iso.run(trace, victim=iso.VictimPolicy)

    class Fullest(iso.VictimPolicy):
        def rank(self, blocks: iso.Blocks, now: int) -> Any:
            return blocks.block[np.argmax(blocks.valid)][None]

    with pytest.raises(iso.DeviceError, match="in a row in which every page is valid"):
        iso.check(Fullest)


def test_columns_are_read_only() -> None:
    class Writes(iso.Placement):
        def host(self, lpns: Ints, last_writes: Ints, now: Ints) -> int:
            lpns[0] = 1
            return 0

    with pytest.raises(ValueError, match="read-only"):
        iso.run("synth:uniform,pages=4096,writes=20000", placement=Writes)


def test_progress_is_told_and_what_it_raises_ends_the_run() -> None:
    told: list[int] = []
    iso.run("synth:uniform,pages=4096,writes=3000000", progress=told.append)
    assert told == sorted(told) and told[-1] == 3_000_000

    def enough(pages: int) -> None:
        raise StopIteration("enough")

    with pytest.raises(StopIteration):
        iso.run(FOREVER, logical_size="16MiB", progress=enough)


@pytest.mark.parametrize(
    "call",
    [
        f'iso.run("{FOREVER}", logical_size="16MiB", progress=ready)',
        f'iso.run("{FOREVER}", progress=ready)',
        f'iso.compare(["{FOREVER}"], logical_size="16MiB", progress=ready)',
        f'iso.Trace("{FOREVER}").info()',
        f'iso.run("{FOREVER}", logical_size="16MiB", placement=P, progress=ready)',
        f'iso.advise("{FOREVER}", progress=ready)',
    ],
)
def test_control_c_ends_what_takes_long(call: str) -> None:
    script = f"""
        import isotherm as iso, os, signal, threading, time
        class P(iso.Placement):
            def host(self, lpns, last_writes, now):
                return 0
        def ready(pages):
            pass
        def interrupt():
            global sent
            sent = time.monotonic()
            os.kill(os.getpid(), signal.SIGINT)
        threading.Timer(0.5, interrupt).start()
        try:
            {call}
        except KeyboardInterrupt:
            print(time.monotonic() - sent)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 1.0


def test_threads_share_traces_but_not_devices() -> None:
    trace = iso.Trace("synth:zipf,theta=0.9,pages=4096,writes=200000")
    expected = iso.run(trace)["pages_programmed"]
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(iso.run(trace)["pages_programmed"])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 4

    inside, go_on = threading.Event(), threading.Event()

    class Waits(iso.Placement):
        def host(self, lpns: Ints, last_writes: Ints, now: Ints) -> int:
            inside.set()
            go_on.wait(30)
            return 0

    device = iso.Device(logical_size="16MiB", placement=Waits)
    user = threading.Thread(target=device.submit, args=(PAGES * 4096, 4096))
    user.start()
    inside.wait(30)
    with pytest.raises(RuntimeError, match="in use by another thread"):
        device.snapshot()
    go_on.set()
    user.join()
    assert device.snapshot().host_pages_written == 1000


def _in_child(trace: iso.Trace, queue: Any) -> None:
    queue.put(iso.run(trace, logical_size="16MiB")["pages_programmed"])


def test_a_forked_process_can_use_traces(captures: Path) -> None:
    pages = np.arange(100_000) % 4096
    traces = [iso.Trace.from_arrays(pages * 4096, 4096), iso.Trace("synth:uniform,pages=4096,writes=50000")]
    context = multiprocessing.get_context("fork")
    for trace in traces:
        expected = iso.run(trace, logical_size="16MiB")["pages_programmed"]
        queue = context.Queue()
        child = context.Process(target=_in_child, args=(trace, queue))
        child.start()
        assert queue.get(timeout=60) == expected
        child.join(60)
        assert child.exitcode == 0


def _resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_nothing_leaks_in_ten_thousand_failures() -> None:
    offsets = PAGES * 4096
    reversed_times = np.arange(1000)[::-1].copy()
    trace = iso.Trace.from_arrays(offsets, 4096)

    def once() -> None:
        with pytest.raises(ValueError):
            iso.Trace.from_arrays(offsets, 4096, None, reversed_times)
        with pytest.raises(iso.SpecError):
            iso.Spec(placement="lifo")
        with pytest.raises(ZeroDivisionError):
            iso.Device(logical_size="256KiB", pages_per_block=4, placement=_Raises).submit(offsets, 4096)
        iso.Trace.from_arrays(offsets, 4096)
        trace.batches().__arrow_c_stream__()

    def many(times: int) -> int:
        for _ in range(times):
            once()
        gc.collect()
        return _resident()

    before = sys.getrefcount(offsets)
    many(1000)
    first = many(1000)
    last = many(8000)
    assert sys.getrefcount(offsets) == before
    assert last - first < 4 << 20, f"{(last - first) >> 10} KiB more"


def test_an_import_loads_a_few_modules_of_the_language_and_no_numpy() -> None:
    """What takes the time of an import are the modules that it loads; `.ci/bench-python` measures it."""
    script = (
        "import __future__, collections.abc, contextlib, enum, functools, re, sys, types, typing, warnings; before = set(sys.modules);"
        "import isotherm; print(*(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert "isotherm" in loaded
    assert [name for name in loaded if name.split(".")[0] != "isotherm"] == []


def test_signals_are_python_again_after_a_run() -> None:
    # A process started in the background may have inherited that the signal is ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        iso.run("synth:uniform,pages=256,writes=1000")
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
