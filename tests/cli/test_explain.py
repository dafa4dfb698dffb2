"""The commands explain, methods and models: what they print, what they write, how they refuse."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import box
import pytest
import torch
import zoo

import sightline
from sightline.cli import main
from sightline.methods import METHODS, Method

PAIR = ("The cat sleeps", "El gato duerme")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Save a model that looks at every position alike, so that its picture is the same on every machine."""
    model = zoo.fresh("marian")
    with torch.no_grad():
        for layer in model.layers("cross"):
            layer.module.q_proj.weight.zero_()
            layer.module.q_proj.bias.zero_()
    path = tmp_path_factory.mktemp("model")
    model.module.save_pretrained(path)
    model.tokenizer.save_pretrained(path)
    return str(path)


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    """Run a command as from a shell, in a window 80 wide; give its exit code, output and error output."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("FORCE_COLOR", raising=False)

    def run(*arguments: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stopped:
            main([str(argument) for argument in arguments])
        out, err = capfd.readouterr()
        return int(stopped.value.code or 0), out, err

    return run


def lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.rstrip().splitlines()]


# Pictures

HEAT_MAP = """
           s
           l *
           e <
       T c e /
       h a p s
       e t s >
    El ░░░░██░░
  gato ░░░░██░░
duerme ░░░░██░░
 *</s> ░░░░██░░

░ from 5 %  ▒ 25 %  ▓ 50 %  █ 75 % of the largest score of the row
* special position

    El ← sleeps 0.625 62%
  gato ← sleeps 0.625 62%
duerme ← sleeps 0.625 62%
 *</s> ← sleeps 0.625 62%
"""


def test_explain_draws_words(run, folder: str) -> None:
    code, out, err = run("explain", "-m", folder, *PAIR, "--method", "attention", "-s", "layer=0", "--special")
    assert (code, err) == (0, "")
    title, *picture = out.split("\n\n", 1)
    assert title.startswith("attention · ")
    assert "layer=0" in title
    assert lines("\n" + picture[0]) == lines(HEAT_MAP)  # sleeps has five of the eight pieces


def test_explain_draws_pieces(run, folder: str) -> None:
    code, out, _ = run("explain", "-m", folder, *PAIR, "--method", "attention", "--pieces", "--special")
    assert code == 0
    picture = lines(out)
    assert "▁gato ████████████████" in picture
    assert "▁gato ← ▁The 0.125 12%" in picture


def test_the_first_explanation_is_readable(run, folder: str) -> None:
    """Without options: words, no special tokens, norms, one layer, and only settings that differ from the default."""
    code, out, err = run("explain", "-m", folder, *PAIR)
    assert (code, err) == (0, "")
    assert out.startswith("norms · layer=1\n\n")
    assert "</s>" not in out
    assert "special" not in out
    model = sightline.load(folder)
    assert sightline.explain(model, *PAIR, method="auto") == sightline.explain(model, *PAIR, method="norms", layer=1)


MODELS = """
 class ends with            task       what is explained
 ForSequenceClassification  classify   the label
"""


def test_models(run) -> None:
    code, out, err = run("models")
    assert (code, err) == (0, "")
    assert lines(out)[:2] == lines(MODELS)[1:]
    _, plain, _ = run("models", "--json")
    for row in json.loads(plain):
        assert any(line.split()[:2] == [row["class"], row["task"]] for line in lines(out)[1:])


@dataclass(frozen=True)
class MagicSettings:
    """Two settings, to see how they are listed."""

    wand: str = "elder"
    """The wood, the core
    and the owner of the wand."""
    strength: float = 0.5


METHODS_TABLE = """
 method  what it computes
 magic   What nobody expected.
 trick   What everybody expected, in a sentence that is too long for one line
         of the table; with a better wand.

 setting=default  what it does                                   of
 strength=0.5                                                    magic trick
 wand=elder       The wood, the core and the owner of the wand.  magic
 wand=holly       The wood, the core and the owner of the wand.  trick
"""


def test_methods(run, monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, err = run("methods", "--json")
    assert (code, err) == (0, "")
    listing = json.loads(out)
    assert list(listing) == list(METHODS)
    assert all(method["does"].endswith(".") for method in listing.values())
    assert listing["norms"]["settings"]["head"] == "sum"
    assert listing["norms"]["meanings"]["head"].startswith("A head's number")
    # Every method has its own description, and every setting is explained.
    assert len({method["does"] for method in listing.values()}) == len(listing)
    assert all(method["meanings"].keys() == method["settings"].keys() for method in listing.values())
    assert list(json.loads(run("methods", "alti", "--json")[1])) == ["alti"]
    trick = "What everybody expected, in a sentence that is too long for one line of the table; with a better wand."
    table = {
        "magic": Method("none.none", MagicSettings(), "What nobody expected."),
        "trick": Method("none.none", MagicSettings(wand="holly"), trick),
    }
    monkeypatch.setattr("sightline.methods.METHODS", table)
    assert lines(run("methods")[1]) == lines(METHODS_TABLE)[1:]


def test_version_and_help(run) -> None:
    assert run("--version")[:2] == (0, f"sightline {sightline.__version__}\n")
    code, out, _ = run("explain", "--help")
    assert code == 0
    assert "Example: sightline explain --method norms" in out
    assert "\n  Example: sightline explain --file" in out  # on a line of its own


# Files


def test_json_and_html(run, folder: str, tmp_path: Path) -> None:
    page, data = tmp_path / "why.html", tmp_path / "why.json"
    code, out, err = run("explain", "-m", folder, *PAIR, "--html", page, "--json", data, "--quiet")
    assert (code, out, err) == (0, "", "")
    why = sightline.explain(folder, *PAIR, method="auto").words().without_special()
    assert sightline.Attribution.from_dict(json.loads(data.read_text())) == why
    assert page.read_text() == why.to_html()
    code, out, err = run("explain", "-m", folder, *PAIR, "--json", "-")
    assert (code, err) == (0, "")
    assert json.loads(out) == json.loads(data.read_text())


def test_other_formats(run, folder: str, tmp_path: Path) -> None:
    files = {name: tmp_path / f"why.{name}" for name in ("svg", "png", "jsonl", "csv")}
    options = [part for name, path in files.items() for part in (f"--{name}", path)]
    assert run("explain", "-m", folder, *PAIR, *options, "--quiet") == (0, "", "")
    why = sightline.explain(folder, *PAIR, method="auto").words().without_special()
    assert files["svg"].read_text() == why.to_svg()
    assert files["png"].read_bytes().startswith(b"\x89PNG")
    assert json.loads(files["jsonl"].read_text()) == why.to_dict()
    assert run("explain", "-m", folder, *PAIR, "--csv", "-")[:2] == (0, files["csv"].read_text())


def test_a_page_never_runs_what_it_shows(run, folder: str, tmp_path: Path) -> None:
    page = tmp_path / "why.html"
    code, _, err = run("explain", "-m", folder, "the <script>alert(1)</script>", "el", "--html", page, "--quiet")
    assert (code, err) == (0, "")
    assert "<script>alert(1)" not in page.read_text()


def test_the_models_own_answer(run, folder: str) -> None:
    code, out, _ = run("explain", "-m", folder, PAIR[0], "--json", "-", "--pieces")
    model = sightline.load(folder)
    assert code == 0
    assert json.loads(out)["target"] == sightline.explain(model, PAIR[0]).without_special().target.to_dict()


# Refusals

MISTAKES = {
    "The source 1 is empty": ["-m", "{folder}", ""],
    "The target 1 is empty": ["-m", "{folder}", "The cat", "  "],
    "The source 1 is too long": ["-m", "{folder}", "cat " * 300, "El gato"],
    "There is no folder '/no/such/model'": ["-m", "/no/such/model", *PAIR],
    "The model 'no-such-model' cannot be loaded": ["-m", "no-such-model", *PAIR],
    "There is no method 'atention'. Did you mean 'attention'": ["-m", "{folder}", *PAIR, "--method", "atention"],
    "There is no setting of norms 'lair'": ["-m", "{folder}", *PAIR, "-s", "lair=2"],
    "There is no layer 9": ["-m", "{folder}", *PAIR, "-s", "layer=9"],
    "The setting 'layer' should look like name=value": ["-m", "{folder}", *PAIR, "-s", "layer"],
    "MarianTokenizer takes no language": ["-m", "{folder}", *PAIR, "--target-lang", "tlh"],
    "no chat template": ["-m", "{folder}", *PAIR, "--chat"],
    "/no/such/page.html cannot be written": ["-m", "{folder}", *PAIR, "--html", "/no/such/page.html"],
    "/no/such/data.json cannot be written": ["-m", "{folder}", *PAIR, "--json", "/no/such/data.json"],
}


@pytest.mark.parametrize("message", MISTAKES)
def test_mistakes_end_with_code_2_and_one_sentence(run, folder: str, message: str) -> None:
    code, out, err = run("explain", *[argument.format(folder=folder) for argument in MISTAKES[message]])
    assert (code, out) == (2, "")
    assert err.startswith("sightline: ")
    assert message in err
    assert err.count("\n") == 1


def test_a_model_without_attention(run, tmp_path: Path) -> None:
    import transformers as tf

    tokenizer = zoo.gpt2_tokenizer()
    config = tf.MambaConfig(vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=1, state_size=4)
    tf.MambaForCausalLM(config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    code, out, err = run("explain", "-m", tmp_path, "the cat", "sleeps")
    assert (code, out) == (2, "")
    assert "has no attention that Sightline can watch" in err


def test_without_a_model_it_is_the_one_in_the_box(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIGHTLINE_BOX", str(tmp_path))
    code, _, err = run("explain", "The cat")
    assert code == 2
    assert "lacks its own model en-es" in err
    box.fill(tmp_path)
    assert run("explain", "The cat", "El gato") == run("explain", "-m", "en-es", "The cat", "El gato")
    assert "El" in run("explain", "The cat", "El gato")[1]


def test_from_a_shell(folder: str) -> None:
    """Nothing but our own sentence reaches standard error, whatever the libraries below would log."""
    command = [sys.executable, "-c", "from sightline.cli import main; main()"]
    done = subprocess.run([*command, "explain", "-m", folder, "cat " * 600, "El gato"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "too long" in done.stderr


# Two segments


def test_a_second_segment(run, tmp_path: Path) -> None:
    model = zoo.model("bert-classifier")
    model.module.save_pretrained(tmp_path / "model")
    model.tokenizer.save_pretrained(tmp_path / "model")
    code, out, _ = run(
        *("explain", "-m", tmp_path / "model", "The cat sleeps", "0", "--second", "A small dog"),
        *("--method", "attention", "--pieces", "--special", "--json", "-"),
    )
    assert code == 0
    expected = sightline.explain(model, ("The cat sleeps", "A small dog"), "0")
    assert json.loads(out) == expected.to_dict()
