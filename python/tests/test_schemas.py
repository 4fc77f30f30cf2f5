"""The published JSON Schemas describe what is written, and take what the reader of specifications takes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from conftest import ROOT

import isotherm as iso
from isotherm import _native


def schema(name: str) -> jsonschema.Draft202012Validator:
    """A validator of one of the project's schemas, which is a valid schema itself."""
    content = json.loads((ROOT / "schema" / f"{name}-v1.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(content)
    return jsonschema.Draft202012Validator(content)


def written(*words: str) -> Any:
    """What a verb of the command line leaves in a folder."""
    subprocess.run([sys.executable, "-m", "isotherm", *words, "--out", "out"], check=True, stdout=subprocess.DEVNULL)
    return json.loads((Path("out") / "results.json").read_text())


@pytest.mark.parametrize("more", [["--set", "device.endurance=1000"], ["--seeds", "3"], ["--ftl", "dftl:cache=64KiB"]])
def test_results_meet_the_schema(more: list[str]) -> None:
    zipf = "synth:zipf,theta=0.9,pages=4Ki,writes=20Ki"
    results = written("compare", zipf, "--placement", "single,epoch", *more)
    schema("results").validate(results)

    # The schema is no rubber stamp.
    results["runs"][0]["gc_count"] = "many"
    assert not schema("results").is_valid(results)
    results["runs"][0]["gc_count"] = 1
    del results["runs"][0]["verdict"]
    assert not schema("results").is_valid(results)


def test_results_of_a_package_meet_the_schema() -> None:
    results = iso.compare("synth:uniform,pages=4Ki,writes=20Ki", placement=["single", "host_gc"])
    schema("results").validate(json.loads(results.to_json()))


@pytest.mark.parametrize(
    ("value", "valid"),
    [
        ({}, True),
        ({"placement": "hotness:mbf"}, True),
        ({"log": {"name": "sfs:segment=1MiB", "below": "dftl:cache=64KiB"}}, True),
        ({"device": {"spare": "15%"}, "dram": {"split": "30%"}}, True),
        ({"gc": {"victm": "fifo"}}, False),
        ({"gc": {"victim": "gredy"}}, False),
        ({"colour": {}}, False),
        ({"placement": 3}, False),
        ({"device": {"spare": "much"}}, False),
        ({"device": {"spare": "7%", "over_provisioning": "7%"}}, False),
        ({"log": {"below": "nowhere"}}, False),
    ],
)
def test_valid_and_invalid_specifications_are_told_apart(value: object, valid: bool) -> None:
    assert schema("spec").is_valid(value) is valid


def candidates(field: dict[str, Any]) -> Iterator[object]:
    """Values at the edges of a key, and beyond them."""
    for form in field.get("anyOf", [field]):
        yield from form.get("enum", [])
        for bound, beyond in [("minimum", -1), ("maximum", 1), ("exclusiveMinimum", 0), ("exclusiveMaximum", 0)]:
            if bound in form:
                edge = form[bound]
                whole = form["type"] == "integer"
                if bound in ("minimum", "maximum"):
                    yield edge
                yield edge + (beyond if whole else beyond * max(abs(edge), 1.0) * 1e-3)
        if form.get("type") == "boolean":
            yield from [True, False, 3]
    yield "no such value"


def test_the_schema_and_the_reader_agree_at_the_edges() -> None:
    validator = schema("spec")
    taken = refused = 0
    for section, content in validator.schema["properties"].items():
        for name, field in content.get("anyOf", [content])[0]["properties"].items():
            if field.get("type") == "string" and "pattern" not in field:
                continue
            for value in candidates(field):
                text = json.dumps(value) if isinstance(value, bool) else str(value)
                try:
                    _native.spec_toml("", [f"{section}.{name}={text}"])
                    reads = True
                except iso.SpecError:
                    reads = False
                assert validator.is_valid({section: {name: value}}) is reads, f"{section}.{name} = {value!r}"
                taken, refused = taken + reads, refused + (not reads)
    assert taken > 100 and refused > 60, (taken, refused)
