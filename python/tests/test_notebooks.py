"""The notebooks run as they stand, and what is checked in has its pictures."""

from __future__ import annotations

from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.mark.parametrize("name", ["first_comparison", "own_placement", "published_figure", "sweep_on_dask"])
def test_notebook(name: str) -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    book = nbformat.read(EXAMPLES / f"{name}.ipynb", as_version=4)
    outputs = [output for cell in book.cells for output in cell.get("outputs", [])]
    pictures = [output for output in outputs if "image/png" in output.get("data", {})]
    assert pictures, "the notebook shows its pictures to those who do not run it"
    client = nbclient.NotebookClient(book, timeout=240, resources={"metadata": {"path": str(EXAMPLES)}})
    client.execute()
