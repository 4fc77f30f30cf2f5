"""The verbs of the command line as functions."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from isotherm import _native
from isotherm._progress import Progress, progress_of
from isotherm._results import Result, Results
from isotherm._spec import Given, Spec, seed_of, spec_of, text_of
from isotherm._trace import ArrowStream, Trace, trace_of

if TYPE_CHECKING:
    from isotherm._advice import Advice

TraceLike = Trace | str | os.PathLike[str] | ArrowStream

#: Keys that `compare` takes several values of.
VARIED = (
    "log.name",
    "log.below",
    "ftl.name",
    "dram.buffer",
    "dram.split",
    "placement.name",
    "gc.victim",
    "device.over_provisioning",
    "device.spare",
)


def _call(name: str, arguments: Sequence[object], options: dict[str, Any]) -> str:
    """The call, to be repeated by whoever reads the results."""
    words = [repr(argument) for argument in arguments] + [f"{key}={value!r}" for key, value in options.items()]
    return f"isotherm.{name}({', '.join(words)})"


def run(
    trace: TraceLike,
    spec: Spec | str | os.PathLike[str] | None = None,
    /,
    *,
    seed: int = 1,
    progress: Progress = None,
    **options: Any,
) -> Result:
    """Replay a trace on one device.

    Parameters
    ----------
    trace : Trace, path, workload or table
        What is replayed; see `Trace`.
    spec : Spec, TOML or path, optional
        The device. Keywords stand over it.
    seed : int, optional
        Seed of every random choice of the device; a synthetic workload has its own.
    progress : callable or True, optional
        Called with the host pages done so far, a few times a second; ``True`` shows a line.
    **options
        Keys of the device (see `Spec`) and of the replay: ``address`` ("refuse", "wrap", "compact"), ``fill``, ``precondition``
        ("none", "sequential", "random", "trace"), ``repeat``, ``measure_last`` (pages).

    Returns
    -------
    Result
        What was counted: the same as ``isotherm run --json`` prints.

    Raises
    ------
    SpecError, TraceError, DeviceError
        What is wrong with the specification, the trace, or a request.
    KeyboardInterrupt
        Ctrl-C ends a run within a moment.

    Notes
    -----
    The interpreter is released while the device is simulated.

    Examples
    --------
    >>> import isotherm as iso
    >>> result = iso.run("synth:zipf,theta=0.99,pages=4096,writes=40000", op=0.07, victim="cost_benefit")
    >>> result.host_pages_written
    40000
    """
    from isotherm._policies import wrapped_placement, wrapped_victim

    given = Given(options)
    device = spec_of(spec, given)
    source = trace_of(trace)
    found = _native.run(
        source._native,
        device.toml(),
        [],
        given.replay,
        seed_of(seed),
        _call("run", [source.name], {**options, "seed": seed}),
        wrapped_placement(device.placement),
        wrapped_victim(device.victim),
        progress_of(progress),
    )
    return Result(found, 0, [source._native])


def compare(
    trace: TraceLike | Sequence[TraceLike],
    spec: Spec | str | os.PathLike[str] | None = None,
    /,
    *,
    seed: int = 1,
    seeds: int = 1,
    progress: Progress = None,
    **options: Any,
) -> Results:
    """Replay traces on every combination of what is given several values, best first, on all cores.

    Parameters
    ----------
    trace : Trace, path, workload, table, or a list of these
        What is replayed.
    spec : Spec, TOML or path, optional
        What the devices have in common.
    seed, seeds : int, optional
        First seed, and number of seeds: with several, synthetic workloads are drawn anew with each, and results have means with 95 %
        confidence intervals (``results.replicates``).
    progress : callable or True, optional
        As for `run`.
    **options
        As for `run`; a list of values makes an axis. Axes may be ``placement``, ``victim``, ``op``, ``spare``, ``ftl``, ``log``,
        ``below``, ``buffer`` and ``split``. A `Placement` or `VictimPolicy` of your own is a value like any other; each run has a
        copy of its own.

    Returns
    -------
    Results
        The runs, best first.

    Examples
    --------
    >>> import isotherm as iso
    >>> runs = iso.compare("synth:uniform,pages=4096,writes=30000", placement=["single", "host_gc"], op=[0.07, 0.15])
    >>> len(runs)
    4
    """
    from isotherm._policies import external_name, is_placement, is_victim, wrapped_placement, wrapped_victim

    many = not isinstance(trace, (Trace, str, os.PathLike)) and not hasattr(trace, "__arrow_c_stream__")
    traces = [trace_of(one) for one in trace] if many else [trace_of(trace)]  # type: ignore[union-attr,arg-type]
    policies: dict[tuple[str, str], object] = {}

    def value_of(key: str, value: object) -> str:
        kind = {"placement.name": "placement", "gc.victim": "victim"}.get(key)
        if kind == "placement" and is_placement(value) or kind == "victim" and is_victim(value):
            name = external_name(value)
            label = name.split("=", 1)[1]
            if policies.setdefault((kind, label), value) is not value:
                raise ValueError(f"{kind}: two policies are called {label}; give one of them another name")
            return name
        return text_of(key, value)

    given = Given(options)
    axes: list[tuple[str, list[str]]] = []
    for key in VARIED:
        if key in given.device:
            value: Any = given.device.pop(key)
            values = list(value) if isinstance(value, (list, tuple)) or hasattr(value, "__array__") else [value]
            axes.append((key, [value_of(key, one) for one in values]))
    base = spec_of(spec, given)
    for key, kind, own in [("placement.name", "placement", base.placement), ("gc.victim", "victim", base.victim)]:
        if own is not None and all(key != axis for axis, _ in axes):
            axes.append((key, [value_of(key, own)]))
    if "placement.name" not in dict(axes):
        name = _table(base)["placement"]["name"]
        default = ["single", "host_gc", "epoch"] if spec is None else [name]
        axes.append(("placement.name", default))
    if "gc.victim" not in dict(axes):
        axes.append(("gc.victim", [_table(base)["gc"]["victim"]]))

    def make(kind: str, label: str) -> object:
        policy = policies[(kind, label)]
        if not isinstance(policy, type):
            policy = copy.deepcopy(policy)
        return wrapped_placement(policy) if kind == "placement" else wrapped_victim(policy)  # type: ignore[arg-type]

    plain = base.replace(placement="single", victim="greedy") if base.placement or base.victim else base
    found = _native.compare(
        [one._native for one in traces],
        plain.toml(),
        [],
        axes,
        given.replay,
        seed_of(seed),
        seeds,
        _call("compare", [[one.name for one in traces]], {**options, "seed": seed, "seeds": seeds}),
        make,
        progress_of(progress),
    )
    return Results(found, [one._native for one in traces])


def _table(spec: Spec) -> dict[str, Any]:
    import tomllib

    return tomllib.loads(spec.toml())


def hotness(
    trace: TraceLike,
    /,
    scheme: str | Sequence[str] = ("mbf", "mhf", "dam", "two_level_lru", "fms"),
    reference: str = "wdac",
    *,
    page_size: int = 4096,
    window: int | None = None,
) -> dict[str, Any]:
    """Judge the writes of a trace by schemes of hot data identification, against a reference.

    Parameters
    ----------
    trace : Trace, path, workload or table
        Whose writes are judged.
    scheme : str or list of str, optional
        Schemes, as ``isotherm list schemes`` names them, with parameters: ``"mbf:filters=8"``.
    reference : str, optional
        The scheme that is right by definition.
    page_size : int, optional
        Bytes of a page.
    window : int, optional
        Writes of each window of the rates over time. Default: a fiftieth of the trace.

    Returns
    -------
    dict
        Rates of each scheme, as ``isotherm hotness --json`` prints them.
    """
    schemes = scheme if isinstance(scheme, str) else ",".join(scheme)
    found: dict[str, Any] = json.loads(_native.hotness(trace_of(trace)._native, schemes, reference, page_size, window))
    return found


def validate(*, quick: bool = True, progress: Progress = None) -> list[dict[str, Any]]:
    """Check the simulator against closed forms of write amplification.

    Parameters
    ----------
    quick : bool, optional
        Only blocks of 64 pages and the middle of the tables.
    progress : callable or True, optional
        As for `run`.

    Returns
    -------
    list of dict
        A cell each: ``name``, ``expected`` and ``measured`` write amplification, ``deviation``, ``tolerance``, ``pass``.
    """
    found: list[dict[str, Any]] = json.loads(_native.validate(quick, progress_of(progress)))
    return found


def advise(
    trace: TraceLike,
    /,
    *,
    drive: str = "tlc-1.92t",
    capacity: int | str | None = None,
    op: float | str | None = None,
    pe_cycles: int | None = None,
    warranty_years: float | None = None,
    ftl: str = "page",
    dram: int | str | None = None,
    split: str | None = None,
    placement: str = "host_gc",
    victim: str = "greedy",
    handles: int = 8,
    fill: float | str = 0.85,
    untouched: float | str = 0.0,
    scale_rate: float = 1.0,
    file_map: str | os.PathLike[str] | None = None,
    partition_offset: int | str | None = None,
    smart_before: str | os.PathLike[str] | None = None,
    smart_after: str | os.PathLike[str] | None = None,
    seed: int = 1,
    exhaustive: bool = False,
    progress: Progress = None,
) -> Advice:
    """Tell what to change about a workload and its drive, with the years that it buys.

    Parameters
    ----------
    trace : Trace, path, workload or table
        The workload. Plans are learnt on its first two thirds, and checked on the last.
    drive : str, optional
        Class of the drive, as ``isotherm list drive-classes`` names it.
    capacity : int or str, optional
        Bytes that the host sees, 16 MiB or more, in place of those of the class: ``"960GB"``.
    op : float or str, optional
        Over-provisioning (T-U)/U, 0.02 to 10, in place of that of the class.
    pe_cycles : int, optional
        Erases that a block endures, 1 or more.
    warranty_years : float, optional
        Years over which drive writes per day are counted, above 0.
    ftl, placement, victim : str, optional
        The drive as it is.
    dram : int or str, optional
        Bytes of DRAM of the real drive that a map held in part and a write buffer share.
    split : str, optional
        The map's share of ``dram``, or a rule that adapts it. Default: ``"50%"``.
    handles : int, optional
        Handles that the drive offers, or that the application can tag: 2 to 16.
    fill : float or str, optional
        Share of the capacity that holds data, above 0, to 1.
    untouched : float or str, optional
        Share of that data that the trace neither reads nor writes, from 0, below 1.
    scale_rate : float, optional
        How many times as fast as in the trace the host writes, above 0.
    file_map : str or path, optional
        Which file lies where: the output of ``filefrag -v`` or of ``isotherm sfs files``.
    partition_offset : int or str, optional
        Bytes before the file system of ``file_map`` on what was traced.
    smart_before, smart_after : str or path, optional
        Counters of the real drive when tracing began and when it ended: JSON of nvme-cli.
    seed : int, optional
        Seed of every random choice of the device; a synthetic workload has its own.
    exhaustive : bool, optional
        Simulate every candidate in full.
    progress : callable or True, optional
        As for `run`.

    Returns
    -------
    Advice
        The same as ``isotherm advise --json`` prints.

    Raises
    ------
    SpecError, TraceError, ValueError
        What is wrong with an argument, named, or with the trace.
    OSError
        A file cannot be read.
    KeyboardInterrupt
        Ctrl-C ends it within a moment.
    """
    from isotherm._advice import Advice

    options: dict[str, Any] = {
        "drive": drive,
        "capacity": capacity,
        "op": op,
        "pe_cycles": pe_cycles,
        "warranty_years": warranty_years,
        "ftl": ftl,
        "dram": dram,
        "split": split,
        "placement": placement,
        "victim": victim,
        "handles": handles,
        "fill": fill,
        "untouched": untouched,
        "scale_rate": scale_rate,
        "file_map": file_map,
        "partition_offset": partition_offset,
        "smart_before": smart_before,
        "smart_after": smart_after,
        "seed": seed_of(seed),
        "exhaustive": exhaustive,
    }
    for one, other in [("split", "dram"), ("partition_offset", "file_map"), ("smart_before", "smart_after"), ("smart_after", "smart_before")]:
        if options[one] is not None and options[other] is None:
            raise ValueError(f"{one}: it needs {other}")
    return Advice(_native.advise(trace_of(trace)._native, options, progress_of(progress)))
