"""How alignments are read: chosen without gold, the right way where there is one, remembered, explained."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
import zoo

import sightline
from sightline.alignment.bitext import build_bitext
from sightline.alignment.links import Alignment
from sightline.alignment.statistical import train_aligner
from sightline.models.loaded import LoadedModel
from sightline.verbs import remembering
from sightline.verbs.ways import Asked, Choice, Way

TEXT = "the cat sees a dog and the bird sings of it on a mat for members"
SENTENCES = [" ".join(TEXT.split()[start : start + length]) for start in range(5) for length in (4, 5, 6, 7)]


def looks_along_the_diagonal(layer: int, offset: int) -> LoadedModel:
    """Build a Marian one of whose layers attends, at step t, to source position t - offset; the other to chance.

    States are made of positions alone. These are sines and cosines, so that a rotation by `offset` steps turns a
    position into another.
    """
    model = zoo.fresh("marian")
    with torch.no_grad():
        body = model.module.model
        body.shared.weight.mul_(1e-3)
        for stack in (body.encoder, body.decoder):
            for block in stack.layers:
                block.self_attn.out_proj.weight.zero_()
                block.self_attn.out_proj.bias.zero_()
                block.fc2.weight.zero_()
                block.fc2.bias.zero_()
                if hasattr(block, "encoder_attn"):
                    block.encoder_attn.out_proj.weight.mul_(1e-3)
                    block.encoder_attn.out_proj.bias.zero_()
                for norm in (child for child in block.children() if isinstance(child, torch.nn.LayerNorm)):
                    norm.bias.zero_()
        attention = body.decoder.layers[layer].encoder_attn
        width = zoo.WIDTH
        half = width // 2
        turn = torch.zeros(width, width)
        for i in range(half):
            angle = torch.tensor(offset / 10000 ** (2 * i / width))
            turn[i, i], turn[i, half + i] = angle.cos(), -angle.sin()
            turn[half + i, i], turn[half + i, half + i] = angle.sin(), angle.cos()
        # All heads see the fastest wheels, which tell neighbours apart.
        size = width // zoo.HEADS
        chosen = [0, 1, half, half + 1][:size]
        pick = torch.eye(width)[chosen].repeat(zoo.HEADS, 1)
        attention.q_proj.weight.copy_(8 * pick @ turn)
        attention.k_proj.weight.copy_(8 * pick)
        attention.q_proj.bias.zero_()
        attention.k_proj.bias.zero_()
    return model


@pytest.mark.parametrize("layer", [0, 1])
@pytest.mark.parametrize(("reading", "offset"), [("output", 0), ("input", 1)])
def test_the_layer_and_reading_that_agree_are_found(layer: int, reading: str, offset: int) -> None:
    model, reverse = looks_along_the_diagonal(layer, offset), looks_along_the_diagonal(1 - layer, offset)
    choice = sightline.explain_choice(model, SENTENCES, SENTENCES, reverse=reverse)
    assert choice.criterion == "agreement of both directions"
    assert choice.backward is not None
    assert choice.forward.settings == {"layer": layer, "reading": reading}
    assert choice.backward.settings == {"layer": 1 - layer, "reading": reading}
    best = max(choice.candidates, key=lambda candidate: candidate.score)
    assert best.score > 0.8
    assert best.way in (choice.forward, choice.backward)


def test_agreement_is_f1_over_the_sample() -> None:
    model, reverse = zoo.fresh("marian"), zoo.fresh("t5")
    sources, targets = SENTENCES, SENTENCES[::-1]
    options = {"extraction": "argmax", "reading": "output"}
    choice = sightline.explain_choice(model, sources, targets, reverse=reverse, **options)

    def links(loaded: LoadedModel, way: Any, *texts: list[str]) -> list[Alignment]:
        return sightline.align(loaded, *texts, method=way.method, extraction=way.extraction, **way.settings)

    forward = [c for c in choice.candidates if c.direction == "forward"]
    backward = [c for c in choice.candidates if c.direction == "backward"]
    assert len(forward) == len(backward) == 2 * 3
    others = [[a.flipped() for a in links(reverse, c.way, targets, sources)] for c in backward]
    for candidate in forward[::3]:
        ours = links(model, candidate.way, sources, targets)
        scores = [
            2
            * sum(len(a.links & b.links) for a, b in zip(ours, theirs, strict=True))
            / sum(len(a) + len(b) for a, b in zip(ours, theirs, strict=True))
            for theirs in others
        ]
        assert candidate.score == pytest.approx(max(scores))
    assert max(c.score for c in forward) == max(c.score for c in backward)


@pytest.mark.parametrize("layer", [0, 1])
@pytest.mark.parametrize(("reading", "offset"), [("output", 0), ("input", 1)])
def test_one_direction_is_enough_to_find_layer_and_reading(layer: int, reading: str, offset: int) -> None:
    choice = sightline.explain_choice(looks_along_the_diagonal(layer, offset), SENTENCES, SENTENCES)
    assert choice.forward.settings == {"layer": layer, "reading": reading}


def test_without_a_reverse_model_an_aligner_decides() -> None:
    model = zoo.fresh("marian")
    choice = sightline.explain_choice(model, zoo.SOURCES, zoo.TARGETS)
    assert choice.criterion == "agreement with a statistical aligner"
    words = [(source.split(), target.split()) for source, target in zip(zoo.SOURCES, zoo.TARGETS, strict=True)]
    aligned = list(train_aligner(build_bitext(words), "diagonal").align(words))
    for candidate in choice.candidates:
        way = candidate.way
        ours = sightline.align(
            model, zoo.SOURCES, zoo.TARGETS, method=way.method, extraction=way.extraction, **way.settings
        )
        shared = sum(len(a.links & b.links) for a, b in zip(ours, aligned, strict=True))
        assert candidate.score == pytest.approx(
            2 * shared / sum(len(a) + len(b) for a, b in zip(ours, aligned, strict=True))
        )
    assert choice.forward == max(choice.candidates, key=lambda candidate: candidate.score).way


def test_what_the_user_names_is_fixed() -> None:
    model = zoo.fresh("marian")
    choice = sightline.explain_choice(model, zoo.SOURCES, zoo.TARGETS, method="attention", reading="output", head=1)
    assert choice.forward.method == "attention"
    assert {c.way.settings["reading"] for c in choice.candidates} == {"output"}
    assert {c.way.settings["layer"] for c in choice.candidates} == {0, 1, "mean"}
    assert choice.forward.settings["head"] == 1
    fixed = sightline.explain_choice(model, zoo.SOURCES, zoo.TARGETS, method="norms", layer=1, reading="input")
    assert fixed.candidates == ()
    saliency = sightline.explain_choice(model, zoo.SOURCES, zoo.TARGETS, method="word_saliency")
    assert (saliency.forward.method, saliency.forward.extraction) == ("word_saliency", "pieces")


def test_a_model_whose_norms_are_not_known_is_read_by_attention() -> None:
    choice = sightline.explain_choice(zoo.model("lstm-input-feeding"), zoo.SOURCES, zoo.TARGETS)
    assert [(c.way.method, c.way.settings) for c in choice.candidates] == [
        ("attention", {"layer": 0, "reading": "input"}),
        ("attention", {"layer": 0, "reading": "output"}),
    ]


# Remembering


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    model = zoo.fresh("marian")
    model.module.save_pretrained(tmp_path)
    model.tokenizer.save_pretrained(tmp_path)
    return tmp_path


def no_choosing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sightline.verbs.aligning.choose", lambda *_: pytest.fail("chose again"))


def test_a_choice_is_remembered_beside_the_model(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = SENTENCES, SENTENCES
    first = sightline.align(str(folder), *texts)
    stored = json.loads((folder / "sightline-align.json").read_text())
    assert len(stored["choices"]) == 1
    choice = sightline.explain_choice(str(folder), *texts)
    with monkeypatch.context() as patched:
        no_choosing(patched)
        again = sightline.load(folder)
        assert [a.links for a in sightline.align(again, *texts)] == [a.links for a in first]
        assert sightline.explain_choice(again, *texts) == choice
    # Another question, or other weights, and it is chosen anew.
    sightline.align(str(folder), *texts, reading="output")
    assert len(json.loads((folder / "sightline-align.json").read_text())["choices"]) == 2
    trained = sightline.load(folder)
    with torch.no_grad():
        trained.module.model.encoder.layers[0].fc1.weight.add_(0.1)
    assert remembering.recall(trained, None, Asked()) is None


def test_a_damaged_file_is_no_obstacle(folder: Path) -> None:
    model, asked = sightline.load(folder), Asked()
    choice = Choice(Way("norms", {"layer": 1}, "argmax"), pairs=25)
    for text in ("", "[]", '{"format": 1}', '{"format": 1, "choices": 3}', '{"format": 9, "choices": {}}'):
        (folder / "sightline-align.json").write_text(text)
        assert remembering.recall(model, None, asked) is None
    remembering.remember(model, None, asked, choice)
    assert remembering.recall(sightline.load(folder), None, asked) == choice


def test_few_pairs_are_remembered_in_memory_until_there_are_more(folder: Path) -> None:
    model = sightline.load(folder)
    one = sightline.explain_choice(model, zoo.SOURCES[:1], zoo.TARGETS[:1])
    assert not (folder / "sightline-align.json").exists()
    assert sightline.explain_choice(model, zoo.SOURCES[1:2], zoo.TARGETS[1:2]) == one
    assert sightline.explain_choice(model, zoo.SOURCES, zoo.TARGETS).pairs == 5
    assert sightline.explain_choice(model, SENTENCES, SENTENCES).pairs == len(SENTENCES)
    assert (folder / "sightline-align.json").exists()


def test_a_choice_survives_json() -> None:
    choice = sightline.explain_choice(zoo.model("marian"), zoo.SOURCES, zoo.TARGETS)
    assert type(choice).from_dict(json.loads(json.dumps(choice.to_dict()))) == choice


# On a trained model


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_auto_is_within_one_point_of_the_best_choice_made_with_gold(tmp_path: Path) -> None:
    import yaml

    from sightline.alignment.symmetrization import symmetrize_all
    from sightline.data.language import GeneratedLanguage, LanguageSettings
    from sightline.training import train

    recipe = yaml.safe_load((Path(__file__).parents[2] / "recipes" / "tiny.yaml").read_text())
    language = GeneratedLanguage(LanguageSettings(**recipe["data"]["train"]["generated"]))
    models = []
    for split, count in (("train", 6000), ("dev", 200)):
        lines = (f"{pair.source}\t{pair.target}\n" for pair in language.pairs(count, split))
        (tmp_path / f"{split}.tsv").write_text("".join(lines), encoding="utf-8")
    for name, columns in (("forward", [0, 1]), ("backward", [1, 0])):
        recipe["data"] = {
            split: {"pairs": str(tmp_path / f"{split}.tsv"), "columns": columns} for split in ("train", "dev")
        }
        models.append(sightline.load(train(recipe, output=tmp_path / name, quiet=True).folder))
    pairs = language.pairs(200, "test")
    gold = [Alignment(pair.links) for pair in pairs]
    sources, targets = [pair.source for pair in pairs], [pair.target for pair in pairs]

    def error_rate(alignments: Sequence[Alignment]) -> float:
        """Give the AER where all gold links are sure, without the intervals of `score`."""
        shared = sum(len(found.links & right.links) for found, right in zip(alignments, gold, strict=True))
        return 100 - 200 * shared / sum(len(found) + len(right) for found, right in zip(alignments, gold, strict=True))

    choice = sightline.explain_choice(models[0], sources, targets, reverse=models[1])
    every: list[list[list[Alignment]]] = []
    for direction, model, texts in (
        ("forward", models[0], (sources, targets)),
        ("backward", models[1], (targets, sources)),
    ):
        ways = [c.way for c in choice.candidates if c.direction == direction]
        found = [sightline.align(model, *texts, method=w.method, extraction=w.extraction, **w.settings) for w in ways]
        every.append(found if direction == "forward" else [[a.flipped() for a in one] for one in found])
    one_way = error_rate(sightline.align(models[0], sources, targets))
    both = error_rate(sightline.align(models[0], sources, targets, reverse=models[1]))
    assert one_way <= min(map(error_rate, every[0])) + 1
    best = min(error_rate(list(symmetrize_all(f, b, "grow-diag-strict"))) for f in every[0] for b in every[1])
    assert both <= best + 1
    assert both < 20
