"""Citations: the schemes that runs used, and what repeats them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from isotherm import _native

if TYPE_CHECKING:
    from isotherm._results import Result


def cite(runs: Sequence[Result], command: str) -> str:
    """BibTeX of what `runs` used, isotherm last."""
    used: list[tuple[str, str]] = []
    for run in runs:
        spec = run.to_dict()["spec"]
        names = [("placements", spec["placement"]["name"]), ("victims", spec["gc"]["victim"]), ("ftls", spec["ftl"]["name"])]
        if "log" in spec:
            names.append(("logs", spec["log"]["name"]))
        for kind, name in names:
            bare, _, rest = name.partition(":")
            used.append((kind, bare))
            if bare == "hotness":
                used.append(("schemes", rest.split(",")[0]))
    entries = []
    for kind, name in dict.fromkeys(used):
        paper = dict(_native.papers(kind) or []).get(name, "none")
        if not paper.startswith("none"):
            entries.append(f"@misc{{{kind[:-1]}_{name},\n  title = {{{_plain(paper)}}},\n  note = {{{kind[:-1]} {_plain(name)}}}\n}}")
    what = [[run.trace, run.seed, run.to_dict()["spec"], run.to_dict()["workload"]] for run in runs]
    digest = hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:16]
    version = _native.__version__
    note = f"version {version}; {command}; specification and trace {digest}"
    entries.append(
        "@software{isotherm,\n  title = {isotherm: a laboratory for flash storage that separates hot data from cold},\n"
        f"  author = {{{{The isotherm authors}}}},\n  version = {{{version}}},\n  note = {{{_plain(note)}}}\n}}"
    )
    return "\n\n".join(entries) + "\n"


def _plain(text: str) -> str:
    """A text that LaTeX reads as it is."""
    return re.sub(r"([&%$#_{}])", r"\\\1", text)
