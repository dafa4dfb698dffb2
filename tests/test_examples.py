"""The examples: notebooks were executed, hold no traces of a machine, and run; so do the scripts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from sightline.data.gold import gold_files
from sightline.models.box import has_box_model

EXAMPLES = Path(__file__).parents[1] / "examples"
NOTEBOOKS = sorted(path.stem for path in EXAMPLES.glob("*.ipynb"))
QUICK = ("prompt", "which_explanation")
needs_the_box = pytest.mark.skipif(not has_box_model(), reason="this installation lacks its own model")


def read(name: str) -> Any:
    return nbformat.read(EXAMPLES / f"{name}.ipynb", as_version=4)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebooks_are_kept_as_they_were_executed(name: str) -> None:
    notebook = read(name)
    nbformat.validate(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert any(cell.outputs for cell in cells)
    for output in (output for cell in cells for output in cell.outputs):
        assert output.output_type != "error"
        assert output.get("name") != "stderr"
        assert str(Path.home()) not in str(output)


@needs_the_box
@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in NOTEBOOKS]
)
def test_notebooks_run(name: str, tmp_path: Path) -> None:
    NotebookClient(
        read(name), timeout=280, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()


def run(script: str, *arguments: object) -> str:
    command = [sys.executable, str(EXAMPLES / script), *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": str(EXAMPLES.parent)}
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout


@needs_the_box
def test_a_corpus_is_aligned(tmp_path: Path) -> None:
    english, spanish, _ = gold_files("everyday")
    out = run("align_corpus.py", english, spanish, tmp_path / "words.txt")
    rows = [line.split("\t") for line in (tmp_path / "words.txt").read_text(encoding="utf-8").splitlines()]
    assert f"{len(rows):,} pairs of words" in out
    assert [int(count) for count, *_ in rows] == sorted((int(count) for count, *_ in rows), reverse=True)
    assert rows[0][1:] == [".", "."]


@pytest.mark.slow
def test_attention_forms_gradually(tmp_path: Path) -> None:
    out = run("watch_attention_form.py", tmp_path / "attention.html")
    entropies = [float(line.split()[3]) for line in out.splitlines() if line.startswith("step")]
    assert entropies[0] > entropies[1] > entropies[2] > entropies[4]
    assert (tmp_path / "attention.html").stat().st_size > 1000
