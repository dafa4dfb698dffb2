"""Recipes: what is read, what is refused, and with which sentence."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from training.tiny import RECIPE, recipe

from sightline.errors import InputError
from sightline.models.lstm import LstmSettings
from sightline.models.transformer import TransformerSettings
from sightline.training.recipe import CorpusSettings, read_recipe

RECIPES = sorted((Path(__file__).parents[2] / "recipes").glob("*.yaml"))


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_every_recipe_of_the_repository_is_valid_and_tells_what_to_expect(path: Path) -> None:
    read_recipe(path)
    header = path.read_text(encoding="utf-8").split("\n\n")[0]
    for subject in ("Data:", "Time:", "Score:"):
        assert f"# {subject}" in header, f"{path.name} has a comment with {subject}"


def test_defaults_fill_what_is_not_written() -> None:
    read = read_recipe({"data": RECIPE["data"], "training": {"steps": 5}})
    assert read.model == TransformerSettings()
    assert read.training.steps == 5
    assert read.training.label_smoothing == 0.1
    assert read.tokenizer.vocabulary == 8000


def test_what_is_written_down_is_the_same_recipe_again() -> None:
    read = read_recipe(RECIPE)
    assert read_recipe(read.to_dict()) == read
    assert read_recipe(yaml.safe_load(yaml.safe_dump(read.to_dict()))) == read


def test_the_architecture_decides_which_keys_a_model_has() -> None:
    data = {"data": RECIPE["data"], "training": {"steps": 5}}
    assert read_recipe(data | {"model": {"architecture": "lstm", "layers": 1}}).model == LstmSettings(layers=1)
    with pytest.raises(InputError, match=r"There is no key 'model.heds'. Did you mean 'model.heads'"):
        read_recipe(data | {"model": {"architecture": "lstm", "heds": 1}})
    with pytest.raises(InputError, match=r"There is no architecture 'lstn'. Did you mean 'lstm'"):
        read_recipe(data | {"model": {"architecture": "lstn"}})


def test_keys_are_set_from_text_or_values() -> None:
    read = read_recipe(RECIPE, ["training.steps=7", "training.learning_rate=1e-4", "model.activation=gelu"])
    assert (read.training.steps, read.training.learning_rate, read.model.activation) == (7, 1e-4, "gelu")
    assert read_recipe(RECIPE, {"seed": 5, "training.minutes": None}).seed == 5
    assert read_recipe(RECIPE, ["data.languages=[de, en]"]).data.languages == ("de", "en")
    assert RECIPE["training"]["steps"] == 12, "the given mapping is left alone"


UNKNOWN = [
    ({"sead": 1}, "There is no key 'sead'. Did you mean 'seed'"),
    ({"training.stepz": 1}, "There is no key 'training.stepz'. Did you mean 'training.steps'"),
    ({"data.train.sorce": "x"}, "There is no key 'data.train.sorce'. Did you mean 'data.train.source'"),
    ({"data.train.generated.stem": 3}, "'data.train.generated.stems'"),
    ({"model.widht": 3}, "There is no key 'model.widht'. Did you mean 'model.width'"),
]


@pytest.mark.parametrize(("changes", "sentence"), UNKNOWN)
def test_an_unknown_key_is_refused_with_the_nearest_one(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        read_recipe(RECIPE, changes)


MISTAKES = [
    ({"training.steps": 0}, r"training.steps: input should be greater than or equal to 1 \(it is 0\)"),
    ({"training.steps": "many"}, "training.steps: input should be a valid integer"),
    (
        {"training.schedule": "linear"},
        "training.schedule: input should be 'inverse_sqrt', 'cosine', 'trapezoid' or 'constant'",
    ),
    ({"training.label_smoothing": 1.0}, "training.label_smoothing: input should be less than 1"),
    ({"training": 5}, "training: "),
    ({"model.width": 15}, "width is 15, which 2 heads do not divide"),
    ({"model.width": "wide"}, "model.width: input should be a valid integer"),
    ({"data.train.generated.stems": 3}, "stems is 3"),
    ({"data.train.pairs": "x.tsv"}, "data.train needs exactly one of"),
    ({"data.train.generated": None}, "data.train needs exactly one of"),
    ({"data.train": {"held_out": 3}}, "data.train needs exactly one of"),
    ({"data.dev": {"source": "only"}}, "data.dev needs exactly one of .* or `held_out`"),
    ({"data.dev.sentences": None}, "data.dev.generated needs data.dev.sentences"),
    ({"data.bidirectional": True, "data.languages": ["en", "en"]}, "needs two languages"),
    ({"data.clean": "hansard"}, r"hansard is for `languages: \[en, fr\]`"),
    ({"tokenizer.joint": False, "tokenizer.kind": "words"}, "joint: false is for pieces"),
    (
        {"tokenizer.joint": False, "data.bidirectional": True, "data.languages": ["en", "es"]},
        "for models of one direction",
    ),
    ({"training.steps.more": 1}, "training.steps.more cannot be set: steps holds the value 12"),
]


@pytest.mark.parametrize(("changes", "sentence"), MISTAKES)
def test_a_value_that_does_not_fit_is_refused(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        read_recipe(RECIPE, changes)


def test_a_missing_section_is_named() -> None:
    with pytest.raises(InputError, match="training: field required"):
        read_recipe({"data": RECIPE["data"]})


def test_a_change_must_look_like_one() -> None:
    with pytest.raises(InputError, match="should look like key=value"):
        read_recipe(RECIPE, ["training.steps"])
    with pytest.raises(InputError, match="is not YAML"):
        read_recipe(RECIPE, ["training.steps=[1"])


FILES = [
    (b"data: [1, 2", "line 1: this is not YAML"),
    (b"just text", "a recipe is a list of `key: value`"),
    (b"\xff\xfe\xff", "not UTF-8"),
]


@pytest.mark.parametrize(("content", "sentence"), FILES)
def test_a_file_that_is_no_recipe_is_refused(content: bytes, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "recipe.yaml"
    path.write_bytes(content)
    with pytest.raises(InputError, match=sentence):
        read_recipe(path)
    with pytest.raises(InputError, match="There is no recipe"):
        read_recipe(tmp_path / "another.yaml")


def test_errors_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(recipe(training={"stepps": 1})), encoding="utf-8")
    with pytest.raises(InputError, match=r"mine.yaml: There is no key 'training.stepps'"):
        read_recipe(path)


def test_a_file_says_only_what_differs_from_the_one_that_it_extends(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text(yaml.safe_dump(RECIPE), encoding="utf-8")
    (tmp_path / "longer.yaml").write_text("extends: base.yaml\ntraining: {steps: 77}\n", encoding="utf-8")
    (tmp_path / "other.yaml").write_text("extends: longer.yaml\nseed: 5\n", encoding="utf-8")
    read = read_recipe(tmp_path / "other.yaml", ["training.warmup=3"])
    expected = read_recipe(RECIPE, {"training.steps": 77, "training.warmup": 3, "seed": 5})
    assert read.to_dict() == expected.to_dict()


def test_a_corpus_from_elsewhere_replaces_that_of_the_base(tmp_path: Path) -> None:
    base = "data: {train: {generated: {stems: 60}, sentences: 10}, dev: {held_out: 2}}\ntraining: {steps: 1}\n"
    (tmp_path / "base.yaml").write_text(base, encoding="utf-8")
    files = "extends: base.yaml\ndata: {train: {source: a.en, target: a.es}, dev: {sentences: 5}}\n"
    (tmp_path / "files.yaml").write_text(files, encoding="utf-8")
    data = read_recipe(tmp_path / "files.yaml").data
    assert data.train == CorpusSettings(source="a.en", target="a.es")
    assert data.dev == CorpusSettings(held_out=2, sentences=5)  # the same corpus, less of it


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("extends: one.yaml", "extends itself"),
        ("extends: two.yaml", "There is no recipe .*two.yaml"),
        ("extends: [one.yaml]", "extends takes the name of a file"),
    ],
)
def test_a_file_cannot_extend_itself_or_nothing(content: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=sentence):
        read_recipe(tmp_path / "one.yaml")


LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join(['*' + before] * 10)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
MERGED = "a: &a {x: 1, y: 2}\n" + "".join(
    f"{name}: &{name}\n  <<: [{', '.join(['*' + before] * 10)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
ODD = {
    "aliases": (LAUGHS, "it has more than 10,000 values, aliases included"),
    "merged aliases": (MERGED, "it has more than 10,000 values, aliases included"),
    "a circle": ("data: &a [*a]\n", "nested more than 50 deep"),
    "depth": ("data: " + "[" * 5_000 + "]" * 5_000, "nested more than 50 deep"),
    "less depth": ("data: " + "[" * 60 + "]" * 60, "nested more than 50 deep"),
    "digits": ("seed: " + "9" * 5_000, "a value cannot be read"),
    "a date": ("seed: 2024-99-99", "a value cannot be read"),
    "no integer": ("seed: !!int ''", "a value cannot be read"),
    "control characters": ("seed: \x01", "this is not YAML"),
    "a list": ("[1, 2]", "a recipe is a list of `key: value`"),
    "numbers as keys": ("1: 2", "a recipe is a list of `key: value`"),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_yaml_is_told_in_one_sentence(name: str, tmp_path: Path) -> None:
    text, sentence = ODD[name]
    (tmp_path / "odd.yaml").write_text(text)
    with pytest.raises(InputError, match=sentence):
        read_recipe(tmp_path / "odd.yaml")


@pytest.mark.parametrize(
    "change",
    [
        "seed=-1", "seed=4294967296", "seed=foo", "training.steps=.nan", "training.steps=1000000000000000",
        "training.learning_rate=.inf", "training.clip=.nan", "evaluation.beam=1000", "evaluation.length_penalty=.nan",
        "model.layers=[1]", "model.width=1e30", "model.dropout=.nan", "model.architecture=[a]", "data.train=5",
        "data.train.generated.stems=-9999999999999", "tokenizer=null", "model=7",
    ],
)  # fmt: skip
def test_values_of_another_kind_are_told_in_one_sentence(change: str) -> None:
    with pytest.raises(InputError):
        read_recipe(RECIPE, [change])
