"""`sightline train` from the command line."""

import json
from pathlib import Path

import pytest
import typer
import yaml
from training.tiny import recipe
from typer.testing import CliRunner

from sightline.cli.train import train
from sightline.errors import InputError

RUNNER = CliRunner()


@pytest.fixture
def app() -> typer.Typer:
    app = typer.Typer()
    app.command()(train)
    return app


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(yaml.safe_dump(recipe()), encoding="utf-8")
    return path


def test_a_recipe_is_trained_with_changes_and_the_result_printed(
    app: typer.Typer, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = RUNNER.invoke(app, [str(path), "--set", "training.steps=4", "--quiet", "--json"], catch_exceptions=False)
    figures = json.loads(result.stdout)
    assert figures["step"] == 4
    assert figures["folder"] == "runs/small"
    assert (tmp_path / "runs" / "small" / "model.safetensors").exists()
    again = RUNNER.invoke(app, [str(path), "-s", "training.steps=4"], catch_exceptions=False)
    assert again.stdout.startswith("runs/small: dev loss")


def test_mistakes_are_input_errors(app: typer.Typer, path: Path) -> None:
    with pytest.raises(InputError, match=r"Did you mean 'training.steps'"):
        RUNNER.invoke(app, [str(path), "--set", "training.stps=4"], catch_exceptions=False)


def test_help_shows_an_example(app: typer.Typer) -> None:
    assert "Example: sightline train recipes/tiny.yaml" in RUNNER.invoke(app, ["--help"]).stdout
