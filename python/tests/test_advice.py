"""Advice from Python is that of the command line, and what is wrong with an argument names it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import isotherm as iso
import pytest

#: A tenth of the pages gets nine tenths of the writes.
TRACE = "synth:hotcold,hot=0.1,hot_writes=0.9,pages=8Ki,writes=60000,seed=3"


def test_advice_is_that_of_the_command_line(tmp_path: Path) -> None:
    words = ["advise", TRACE, "--drive", "client-tlc-1t", "--fill", "100%", "--handles", "2", "--op", "10%", "--scale-rate", "2"]
    there = tmp_path / "there"
    command = [sys.executable, "-m", "isotherm", *words, "--json", "--out", str(there)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    advice = iso.advise(TRACE, drive="client-tlc-1t", fill=1.0, handles=2, op=0.1, scale_rate=2)
    assert advice.to_json().strip() == said.strip()
    assert advice.to_dict() == json.loads(said)
    assert [row.what for row in advice.rows] == [row["what"] for row in advice.to_dict()["rows"]]
    best = advice.best
    assert (best is None) == (advice.to_dict()["recommendation"]["row"] is None)
    assert advice.recommendation in repr(advice) and "as it is" in advice._repr_html_()
    here = tmp_path / "here"
    advice.write(here)

    def files(folder: Path) -> dict[str, bytes]:
        # The command that replays a plan names the folder.
        found = (path for path in folder.rglob("*") if path.is_file() and path.name != "replay.txt")
        return {str(path.relative_to(folder)): path.read_bytes() for path in found}

    assert files(here) == files(there)
    advice.report(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_bytes() == (there / "advice.html").read_bytes()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"drive": "floppy"}, "drive: there is no class"),
        ({"capacity": "1MiB"}, "capacity: .*out of range"),
        ({"op": 0.001}, "op: .*out of range"),
        ({"op": "much"}, "op: .*not a share"),
        ({"pe_cycles": 0}, "pe_cycles: 0 is out of range"),
        ({"warranty_years": -1}, "warranty_years: .*out of range"),
        ({"fill": 0}, "fill: .*out of range"),
        ({"untouched": 1.0}, "untouched: .*out of range"),
        ({"handles": 1}, "handles: 1 is out of range"),
        ({"scale_rate": float("inf")}, "scale_rate: inf is out of range"),
        ({"placement": "nowhere"}, "nowhere"),
        ({"split": "50%"}, "split: it needs dram"),
        ({"smart_before": "a"}, "smart_before: it needs smart_after"),
    ],
)
def test_a_wrong_argument_is_named(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=f"^[^-]*{words}"):
        iso.advise(TRACE, **options)


def test_a_file_beside_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nothing-here"):
        iso.advise(TRACE, file_map=tmp_path / "nothing-here")
    wrong = tmp_path / "map"
    wrong.write_text("0: 0..1: 2..3: 2:\n")
    with pytest.raises(ValueError, match="map: line 1: there is no file yet"):
        iso.advise(TRACE, file_map=wrong)
    wrong.write_text("{}")
    with pytest.raises(ValueError, match="no counter of host writes"):
        iso.advise(TRACE, smart_before=wrong, smart_after=wrong)
