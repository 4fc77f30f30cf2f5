"""A laboratory for flash storage that separates hot data from cold.

Replay a block trace on simulated SSDs, with placements, victim policies, mappings and caches of the literature or of your
own, and see what each writes on top of what the host writes.

>>> import isotherm as iso
>>> trace = iso.Trace("synth:zipf,theta=0.99,pages=4096,writes=40000")
>>> runs = iso.compare(trace, placement=["single", "sepbit"], victim="cost_benefit", op=0.07)
>>> runs[0].write_amplification > 1
True

The functions are the verbs of the command line, and count the same: `run`, `compare`, `sweep`, `hotness`, `validate`, `advise`. A `Device`
takes requests step by step. `Placement` and `VictimPolicy` are for schemes of your own, which `check` puts to the test.
Tables come in Arrow's form, which pandas, polars, DuckDB and pyarrow take as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isotherm._advice import Advice as Advice
    from isotherm._device import Device as Device
    from isotherm._native import DeviceError as DeviceError
    from isotherm._native import IsothermError as IsothermError
    from isotherm._native import SpecError as SpecError
    from isotherm._native import Table as Table
    from isotherm._native import TraceError as TraceError
    from isotherm._native import __version__ as __version__
    from isotherm._policies import Block as Block
    from isotherm._policies import Blocks as Blocks
    from isotherm._policies import Placement as Placement
    from isotherm._policies import VictimPolicy as VictimPolicy
    from isotherm._policies import check as check
    from isotherm._results import Result as Result
    from isotherm._results import Results as Results
    from isotherm._results import Verdict as Verdict
    from isotherm._results import read_results as read_results
    from isotherm._spec import Spec as Spec
    from isotherm._spec import names as names
    from isotherm._sweep import SweepInterrupted as SweepInterrupted
    from isotherm._sweep import sweep as sweep
    from isotherm._trace import Op as Op
    from isotherm._trace import Trace as Trace
    from isotherm._verbs import advise as advise
    from isotherm._verbs import compare as compare
    from isotherm._verbs import hotness as hotness
    from isotherm._verbs import run as run
    from isotherm._verbs import validate as validate

_PLACES = {
    "Advice": "_advice",
    "Block": "_policies",
    "Blocks": "_policies",
    "Device": "_device",
    "DeviceError": "_native",
    "IsothermError": "_native",
    "Op": "_trace",
    "Placement": "_policies",
    "Result": "_results",
    "Results": "_results",
    "Spec": "_spec",
    "SpecError": "_native",
    "SweepInterrupted": "_sweep",
    "Table": "_native",
    "Trace": "_trace",
    "TraceError": "_native",
    "Verdict": "_results",
    "VictimPolicy": "_policies",
    "__version__": "_native",
    "advise": "_verbs",
    "check": "_policies",
    "compare": "_verbs",
    "hotness": "_verbs",
    "names": "_spec",
    "read_results": "_results",
    "run": "_verbs",
    "sweep": "_sweep",
    "validate": "_verbs",
}

__all__ = sorted(_PLACES)


def __getattr__(name: str) -> Any:
    # Modules are loaded when something of them is asked for, so that an import costs little.
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module 'isotherm' has no attribute {name!r}")
    import importlib

    found = getattr(importlib.import_module(f"isotherm.{place}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
