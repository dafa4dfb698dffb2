"""`sightline score` and `sightline symmetrize`, as a user types them."""

import json

import pytest
import typer
from typer.testing import CliRunner

from sightline.cli.score import score
from sightline.cli.symmetrize import symmetrize
from sightline.errors import InputError
from sightline.version import __version__

app = typer.Typer()
app.command("score")(score)
app.command("symmetrize")(symmetrize)


def run(*arguments, input=None):
    result = CliRunner().invoke(app, list(map(str, arguments)), input=input, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture
def files(tmp_path):
    texts = {
        "forward": "0-0 1-1\n0-1 1-0\n",
        "reverse": "0-0 2-1\n1-0 0-1\n",
        "gold": "1-1 2p2\n1-2 2-1\n",
        "source": "a b\na b\n",
        "target": "x y z\nx y\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_score(files):
    printed = run("score", files / "forward", files / "gold", "--gold-base", 1).splitlines()
    assert (
        printed[0]
        == f"AER|sentences:2|sure:3|possible:4|bootstrap:1000|seed:1|sightline:{__version__} = 0.00 [0.00, 0.00]"
    )
    assert [line.split("|")[0] for line in printed] == ["AER", "precision", "recall", "F1"]


def test_score_as_json_from_standard_input(files):
    gold = ("--gold-base", 1, "--source", files / "source", "--target", files / "target")
    printed = json.loads(run("score", "-", files / "gold", *gold, "--reverse", "--json", input="0-0\n0-1\n"))
    assert printed["AER"]["value"] == pytest.approx(100 * (1 - (2 + 2) / (2 + 3)))


def test_score_refuses_what_contradicts_the_texts(files):
    with pytest.raises(InputError, match=r"gold, sentence 1: .* lies outside .* looks 1-based"):
        run("score", files / "forward", files / "gold", "--source", files / "source", "--target", files / "source")
    with pytest.raises(InputError, match="--target also needs --source"):
        run("score", files / "forward", files / "gold", "--target", files / "target")


def test_symmetrize(files):
    assert run("symmetrize", files / "forward", files / "reverse", "--rule", "intersection") == "0-0\n0-1 1-0\n"
    assert run("symmetrize", files / "forward", files / "reverse", "--rule", "union", "--confidences") == (
        "0-0:1 1-1:0.5 1-2:0.5\n0-1:1 1-0:1\n"
    )
    printed = run("symmetrize", files / "forward", files / "reverse", "--json").splitlines()
    assert json.loads(printed[0]) == {"links": [[0, 0, 1.0], [1, 1, 0.5]]}


def test_symmetrize_to_a_file(files):
    assert run("symmetrize", files / "forward", files / "forward", "--same-order", "-o", files / "both") == ""
    assert (files / "both").read_text() == (files / "forward").read_text()
    with pytest.raises(InputError, match="no symmetrisation rule 'grow'"):
        run("symmetrize", files / "forward", files / "reverse", "--rule", "grow")
