"""What the package shows of itself: tables, reports, charts, citations, help."""

from __future__ import annotations

import doctest
import importlib
import inspect
import json
import pickle
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import isotherm as iso
import pytest

TRACE = "synth:zipf,theta=0.99,pages=8Ki,writes=60000"


@pytest.fixture(scope="module")
def runs() -> iso.Results:
    return iso.compare(TRACE, placement=["single", "sepbit"], op=[0.15, 0.28])


def test_tables_go_to_every_library_without_copies(runs: iso.Results) -> None:
    import duckdb
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    table = runs.table()
    labels = [run.label for run in runs]
    assert table["label"] == labels and table.num_rows == len(table) == 4
    assert pa.table(table)["label"].to_pylist() == labels
    assert pl.DataFrame(table)["label"].to_list() == labels
    assert pd.DataFrame.from_arrow(table)["label"].to_list() == labels
    shown = table  # DuckDB finds it by its name
    assert shown is table
    assert duckdb.sql("select count(*) from shown").fetchall() == [(4,)]
    series = pl.DataFrame(runs[0].series)
    assert series["host_pages_written"][-1] == 60_000
    first, again = pa.table(table), pa.table(table)
    column = first.schema.get_field_index("write_amplification")
    address = [t.column(column).chunk(0).buffers()[1].address for t in (first, again)]
    assert address[0] == address[1], "both show the same memory"
    with pytest.raises(KeyError, match="colour"):
        table.column("colour")


def test_batches_are_the_requests() -> None:
    import pyarrow as pa

    trace = iso.Trace("synth:uniform,pages=64,writes=1000,seed=2")
    whole = pa.table(trace.batches(300))
    assert [len(batch) for batch in trace.batches(300)] == [300, 300, 300, 100]
    assert whole["offset"].to_pylist() == [value for batch in trace for value in batch["offset"]]
    assert set(whole["op"].to_pylist()) == {int(iso.Op.WRITE)}
    assert iso.run(iso.Trace(whole), logical_size="1MiB").host_pages_written == 1000


def test_results_have_every_key_of_the_schema(runs: iso.Results) -> None:
    schema = json.loads((Path(__file__).resolve().parents[2] / "schema" / "results-v1.schema.json").read_text())
    keys = schema["$defs"]["RunResult"]["required"]
    for run in runs:
        for key in keys:
            assert hasattr(run, key), key
            assert key in dir(run)
    run = runs[0]
    assert run.erase_count.total == run["erase_count.total"] == run.to_dict()["erase_count"]["total"]
    assert run.latency_ns.write.p99 == run["latency_ns.write.p99"]
    assert isinstance(run.verdict.reasons, list) and bool(run.verdict) == run.verdict.valid
    assert run.write_amplification == min(other.write_amplification for other in runs)


def test_reports_and_files(runs: iso.Results, tmp_path: Path) -> None:
    runs.report(tmp_path / "all.html")
    iso.run(TRACE).report(tmp_path / "one.html")
    for name in ["all.html", "one.html"]:
        assert "<html" in (tmp_path / name).read_text()
    assert TRACE in (tmp_path / "one.html").read_text()
    runs.write(tmp_path / "out", csv=True, parquet=True)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["results.csv", "results.json", "results.parquet"]
    assert iso.read_results(tmp_path / "out" / "results.json").to_json() == runs.to_json()
    for shown in [runs._repr_html_(), repr(runs), runs[0]._repr_html_(), repr(runs[0])]:
        assert "sepbit" in shown


@pytest.mark.parametrize("ending", ["svg", "png", "pdf"])
def test_charts_are_saved_without_a_network(runs: iso.Results, tmp_path: Path, ending: str) -> None:
    for name, chart in [("bars", runs.plot.write_amplification()), ("lines", runs.plot.series())]:
        path = tmp_path / f"{name}.{ending}"
        chart.save(str(path))
        assert path.stat().st_size > 1000


def test_results_come_whole_from_another_process(runs: iso.Results) -> None:
    copy = pickle.loads(pickle.dumps(runs))
    assert copy.to_json() == runs.to_json() and len(copy) == len(runs)
    one = pickle.loads(pickle.dumps(runs[1]))
    assert one.to_json() == runs[1].to_json() and one.cite() == runs[1].cite()
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        elsewhere = pool.submit(iso.run, TRACE).result()
    here = iso.run(TRACE)
    assert all(elsewhere.series[name] == here.series[name] for name in here.series.column_names)


def test_citations_name_the_schemes_and_what_repeats_the_run(runs: iso.Results) -> None:
    text = runs.cite()
    assert "SepBIT, FAST" in text and "@software{isotherm" in text and iso.__version__ in text
    assert "isotherm.compare" in text
    assert text.count("{") == text.count("}")
    digest = [iso.run(TRACE, op=op).cite()[-24:] for op in (0.15, 0.15, 0.28)]
    assert digest[0] == digest[1] != digest[2]


def test_specifications() -> None:
    spec = iso.Spec(op="7%", victim="fifo", endurance=3000)
    assert iso.Spec(spec.toml()) == spec == iso.Spec("gc.victim = 'fifo'", op=0.07, endurance=3000)
    assert iso.run(TRACE, spec)["spec.device.endurance"] == 3000
    assert iso.run(TRACE, spec, spare="10%", victim="greedy")["spec.gc.victim"] == "greedy"
    assert "device.over_provisioning" in iso.Spec.keys()
    assert "sepbit" in iso.names("placements") and "external" not in iso.names("placements")
    with pytest.raises(ValueError, match="choose from placements"):
        iso.names("colours")


def test_traces_travel_by_name() -> None:
    trace = iso.Trace(TRACE)
    assert pickle.loads(pickle.dumps(trace)).name == TRACE


def test_who_asks_is_kept_in_every_form(tmp_path: Path) -> None:
    rows = "".join(f"{at},W,{at * 4096},4096,s{at % 3}\n" for at in range(300))
    (tmp_path / "a.csv").write_text(f"ts_ns,op,offset,length,stream\n{rows}")
    iso.Trace(tmp_path / "a.csv").convert(tmp_path / "b.parquet")
    trace = iso.Trace(tmp_path / "b.parquet")
    trace.info()
    trace.convert(tmp_path / "c.csv")
    assert (tmp_path / "c.csv").read_text() == (tmp_path / "a.csv").read_text()


def test_the_command_comes_with_the_package() -> None:
    done = subprocess.run([sys.executable, "-m", "isotherm", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["isotherm", iso.__version__]
    wrong = subprocess.run([sys.executable, "-m", "isotherm", "run", "nothing.csv"], capture_output=True, text=True)
    assert wrong.returncode == 2 and wrong.stderr.startswith("isotherm: nothing.csv")


def test_everything_public_is_documented_and_its_examples_run() -> None:
    for name in iso.__all__:
        if name == "__version__":
            continue
        thing = getattr(iso, name)
        assert inspect.getdoc(thing), name
        if inspect.isclass(thing):
            for member, value in vars(thing).items():
                if not member.startswith("_") and callable(value):
                    assert inspect.getdoc(value), f"{name}.{member}"
    for module in ["isotherm", *(f"isotherm.{part}" for part in "_device _policies _spec _trace _verbs".split())]:
        failures, examples = doctest.testmod(importlib.import_module(module))
        assert failures == 0 and examples >= 0
