"""How alignments are read: chosen without gold, the right way where there is one, remembered, explained."""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import torch
import zoo

import sightline
from sightline.alignment.bitext import build_bitext
from sightline.alignment.extraction import extract_alignment
from sightline.alignment.joining import join_scores, word_shares
from sightline.alignment.links import Alignment
from sightline.alignment.statistical import train_aligner
from sightline.alignment.symmetrization import symmetrize
from sightline.data.language import GeneratedLanguage, GeneratedPair, LanguageSettings
from sightline.errors import InputError
from sightline.models.loaded import LoadedModel
from sightline.verbs import choosing, saved_choice
from sightline.verbs.align_options import AlignOptions
from sightline.verbs.readout import Choice, Readout

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
    best = max((c for c in choice.candidates if c.joined is not None), key=lambda candidate: candidate.joined or 0)
    assert (best.joined or 0) > 0.8
    assert choice.pairs == len(SENTENCES)
    assert choice.sample == SENTENCES[0]


def best_links(model: LoadedModel, readout: Readout, sources: list[str], targets: list[str]) -> list[Alignment]:
    return sightline.align(
        model, sources, targets, method=readout.method, reverse=False, extraction="argmax-words", **readout.settings
    )


def test_scores_are_the_share_of_words_that_are_each_others_best() -> None:
    model, reverse = zoo.fresh("marian"), zoo.fresh("t5")
    sources, targets = SENTENCES, SENTENCES[::-1]
    choice = sightline.explain_choice(model, sources, targets, reverse=reverse)
    words = sum(len(text.split()) for text in sources + targets)
    candidates = {
        direction: [c for c in choice.candidates if c.direction == direction] for direction in ("forward", "backward")
    }
    ours = [best_links(model, c.readout, sources, targets) for c in candidates["forward"]]
    theirs = [[a.flipped() for a in best_links(reverse, c.readout, targets, sources)] for c in candidates["backward"]]
    shares = np.array(
        [
            [2 * sum(len(a.links & b.links) for a, b in zip(one, other, strict=True)) / words for other in theirs]
            for one in ours
        ]
    )
    # Heads that did not come near are left out of the list, so that a partner may be missing.
    assert all(c.score >= share - 1e-6 for c, share in zip(candidates["forward"], shares.max(1), strict=True))
    assert max(c.score for c in candidates["forward"]) == pytest.approx(shares.max(), abs=1e-6)
    joined = sightline.align(model, sources, targets, reverse=reverse, symmetrize="intersection")
    share = 2 * sum(map(len, joined)) / words
    assert share == pytest.approx(max(c.joined or 0 for c in candidates["forward"]), abs=0.01)


@pytest.mark.parametrize("layer", [0, 1])
@pytest.mark.parametrize(("reading", "offset"), [("output", 0), ("input", 1)])
def test_one_direction_is_enough_to_find_layer_and_reading(layer: int, reading: str, offset: int) -> None:
    choice = sightline.explain_choice(looks_along_the_diagonal(layer, offset), SENTENCES, SENTENCES)
    assert choice.criterion == "agreement with a statistical aligner"
    assert choice.forward.settings["layer"] == layer
    assert choice.forward.settings["reading"] == reading


def test_without_a_reverse_model_an_aligner_decides() -> None:
    model = zoo.fresh("marian")
    choice = sightline.explain_choice(model, SENTENCES, SENTENCES[::-1])
    words = [(source.split(), target.split()) for source, target in zip(SENTENCES, SENTENCES[::-1], strict=True)]
    aligned = list(train_aligner(build_bitext(words), "diagonal").align(words))
    for candidate in choice.candidates:
        ours = best_links(model, candidate.readout, SENTENCES, SENTENCES[::-1])
        shared = sum(len(a.links & b.links) for a, b in zip(ours, aligned, strict=True))
        assert candidate.score == pytest.approx(
            2 * shared / sum(len(a) + len(b) for a, b in zip(ours, aligned, strict=True)), abs=1e-9
        )
    assert choice.forward == max(choice.candidates, key=lambda candidate: candidate.score).readout


@pytest.mark.parametrize("name", ["marian", "t5", "nllb", "lstm", "conv"])
def test_what_is_read_by_input_is_a_step_later(name: str) -> None:
    model = zoo.model(name)
    for source, target in zip(zoo.SOURCES, zoo.TARGETS, strict=True):
        by_output, by_input = (
            sightline.explain(model, source, target, method="attention", reading=reading)
            for reading in ("output", "input")
        )
        later = choosing._a_step_later(by_output)
        words = ~by_input.target.special
        assert later.scores[..., : len(words), :][..., words, :] == pytest.approx(
            by_input.scores[..., words, :], abs=1e-7
        )


def test_what_the_user_names_is_fixed() -> None:
    model = zoo.fresh("marian")
    choice = sightline.explain_choice(model, SENTENCES, SENTENCES, method="attention", reading="output", head=1)
    assert choice.forward.method == "attention"
    assert {c.readout.settings["reading"] for c in choice.candidates} == {"output"}
    assert {c.readout.settings["layer"] for c in choice.candidates} == {0, 1, "mean"}
    assert choice.forward.settings["head"] == 1
    fixed = sightline.explain_choice(model, SENTENCES, SENTENCES, method="norms", layer=1, reading="input")
    assert fixed.candidates == ()
    saliency = sightline.explain_choice(model, SENTENCES, SENTENCES, method="word_saliency")
    assert saliency.forward == Readout("word_saliency")


def test_a_model_whose_norms_are_not_known_is_read_by_attention() -> None:
    choice = sightline.explain_choice(zoo.fresh("lstm-input-feeding"), SENTENCES, SENTENCES)
    assert [(c.readout.method, c.readout.settings) for c in choice.candidates] == [
        ("attention", {"layer": 0, "reading": "input"}),
        ("attention", {"layer": 0, "reading": "output"}),
    ]


def test_heads_that_only_look_along_the_diagonal_are_not_chosen() -> None:
    """Two heads agree with each other more than the layers do, but less with an aligner that knows no positions."""
    mutual = np.array([[0.7, 0.2], [0.2, 0.95]])
    heads = np.array([[False, True], [True, True]])
    chosen = choosing._without_positional_heads(choosing._Joined(mutual, np.array([[0.5, 0.1], [0.1, 0.3]])), heads)
    assert chosen.argmax() == 0
    chosen = choosing._without_positional_heads(choosing._Joined(mutual, np.array([[0.5, 0.1], [0.1, 0.6]])), heads)
    assert chosen.argmax() == 3


def test_best_effort_tries_saliency_alone_and_times_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "BEST_EFFORT", Readout("word_saliency", {"smoothgrad": 2}))
    for options in ({"reverse": zoo.fresh("t5")}, {}):
        choice = sightline.explain_choice(zoo.fresh("marian"), SENTENCES, SENTENCES, effort="best", **options)
        fast = sightline.explain_choice(zoo.fresh("marian"), SENTENCES, SENTENCES, **options)
        assert choice.forward in choosing._products(fast.forward)
    product = choosing._products(Readout("norms", {"layer": 1, "reading": "input"}))[2]
    model = zoo.model("marian")
    monkeypatch.setattr(choosing, "_choose", lambda *_: Choice(product, None, "a test", 20))
    found = sightline.align(zoo.fresh("marian"), SENTENCES, SENTENCES, effort="best")
    norms, saliency = (
        sightline.explain(model, SENTENCES, SENTENCES, method=part.method, **part.settings) for part in product.parts
    )
    for alignment, one, other in zip(found, norms, saliency, strict=True):
        joint = np.sqrt(word_shares(one).of_words * word_shares(other).of_words)
        assert alignment.links == {(int(row.argmax()), target) for target, row in enumerate(joint) if row.max() > 0}


# Few pairs, and what is remembered


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    model = zoo.fresh("marian")
    model.module.save_pretrained(tmp_path)
    model.tokenizer.save_pretrained(tmp_path)
    return tmp_path


def test_few_pairs_are_no_lottery(folder: Path) -> None:
    choices = [
        sightline.explain_choice(str(folder), source, target)
        for source, target in zip(zoo.SOURCES, zoo.TARGETS, strict=True)
    ]
    assert {str(choice.forward) for choice in choices} == {"norms layer=-1 reading=output"}
    assert "the default, since choosing takes at least 20 pairs, not 1" in str(choices[0])
    assert not (folder / "sightline-align.json").exists()
    model = sightline.load(folder)
    assert sightline.explain_choice(model, SENTENCES[:19], SENTENCES[:19]).pairs == 0
    assert sightline.explain_choice(model, SENTENCES, SENTENCES).pairs == len(SENTENCES)
    assert (folder / "sightline-align.json").exists()


def test_a_choice_is_remembered_beside_the_model(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    texts = SENTENCES, SENTENCES
    first = sightline.align(str(folder), *texts)
    assert [record.getMessage() for record in caplog.records] == [
        f"How to read alignments off this model is kept in {folder / 'sightline-align.json'}."
    ]
    stored = json.loads((folder / "sightline-align.json").read_text())
    assert len(stored["choices"]) == 1
    with monkeypatch.context() as patched:
        patched.setattr(choosing, "_choose", lambda *_: pytest.fail("chose again"))
        again = sightline.load(folder)
        assert [a.links for a in sightline.align(again, *texts)] == [a.links for a in first]
        choice = sightline.explain_choice(again, *texts)
        assert choice.is_remembered
        assert f"remembered: chosen by {choice.criterion}, on 20 pairs, the first of them 'the cat sees a'" in str(
            choice
        )
        # How links are read off scores, and joined, is no part of the choice.
        sightline.align(again, *texts, extraction="pieces")
    # Another question, or other weights, and it is chosen anew.
    sightline.align(str(folder), *texts, reading="output")
    assert len(json.loads((folder / "sightline-align.json").read_text())["choices"]) == 2
    trained = sightline.load(folder)
    with torch.no_grad():
        trained.module.model.encoder.layers[0].fc1.weight.add_(0.1)
    assert saved_choice.recall(trained, None, AlignOptions()) is None


def test_it_can_be_chosen_again(folder: Path) -> None:
    first = sightline.explain_choice(str(folder), SENTENCES, SENTENCES)
    again = sightline.explain_choice(str(folder), SENTENCES[::-1], SENTENCES, choose_again=True)
    assert (again.sample, again.is_remembered) == (SENTENCES[-1], False)
    assert sightline.explain_choice(str(folder), SENTENCES, SENTENCES).sample == again.sample != first.sample


def test_a_folder_that_cannot_be_written_is_no_obstacle(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object) -> None:
        raise InputError("read-only")

    monkeypatch.setattr(saved_choice, "write_json", refuse)
    model = sightline.load(folder)
    choice = sightline.explain_choice(model, SENTENCES, SENTENCES)
    assert not caplog.records
    assert sightline.explain_choice(model, SENTENCES, SENTENCES) == choice


def test_a_damaged_file_is_no_obstacle(folder: Path) -> None:
    model, options = sightline.load(folder), AlignOptions()
    choice = Choice(Readout("norms", {"layer": 1}), pairs=25)
    for text in ("", "[]", '{"format": 2}', '{"format": 2, "choices": 3}', '{"format": 9, "choices": {}}'):
        (folder / "sightline-align.json").write_text(text)
        assert saved_choice.recall(model, None, options) is None
    saved_choice.remember(model, None, options, choice)
    assert saved_choice.recall(sightline.load(folder), None, options) == choice


def test_a_choice_survives_json() -> None:
    choice = sightline.explain_choice(zoo.fresh("marian"), SENTENCES, SENTENCES, reverse=zoo.model("t5"))
    assert Choice.from_dict(json.loads(json.dumps(choice.to_dict()))) == choice


# On trained models


class Trained(NamedTuple):
    """A tiny model of each direction of a generated language, and pairs of it with their links."""

    forward: LoadedModel
    backward: LoadedModel
    train: list[GeneratedPair]
    test: list[GeneratedPair]

    @property
    def texts(self) -> tuple[list[str], list[str]]:
        return [pair.source for pair in self.test], [pair.target for pair in self.test]


def train_both_ways(folder: Path, steps: int) -> Trained:
    import yaml

    from sightline.training import train

    recipe = yaml.safe_load((Path(__file__).parents[2] / "recipes" / "tiny.yaml").read_text())
    recipe["training"] |= {"steps": steps, "checkpoint_every": steps, "average": 1}
    language = GeneratedLanguage(LanguageSettings(**recipe["data"]["train"]["generated"]))
    models = []
    for split, count in (("train", 6000), ("dev", 200)):
        lines = (f"{pair.source}\t{pair.target}\n" for pair in language.pairs(count, split))
        (folder / f"{split}.tsv").write_text("".join(lines), encoding="utf-8")
    for name, columns in (("forward", [0, 1]), ("backward", [1, 0])):
        recipe["data"] = {
            split: {"pairs": str(folder / f"{split}.tsv"), "columns": columns} for split in ("train", "dev")
        }
        models.append(sightline.load(train(recipe, output=folder / name, quiet=True).folder))
    return Trained(*models, language.pairs(2000, "train"), language.pairs(200, "test"))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_auto_is_within_one_point_of_the_best_choice_made_with_gold(tmp_path: Path) -> None:
    trained = train_both_ways(tmp_path, steps=400)
    gold = [Alignment(pair.links) for pair in trained.test]
    sources, targets = trained.texts

    def error_rate(alignments: Sequence[Alignment]) -> float:
        """Return the AER where all gold links are sure, without the intervals of `score`."""
        shared = sum(len(found.links & right.links) for found, right in zip(alignments, gold, strict=True))
        return 100 - 200 * shared / sum(len(found) + len(right) for found, right in zip(alignments, gold, strict=True))

    choice = sightline.explain_choice(trained.forward, sources, targets, reverse=trained.backward, choose_again=True)
    forward, backward = (
        [one.readout for one in choice.candidates if one.direction == direction and one.joined is not None]
        for direction in ("forward", "backward")
    )
    best = min(
        error_rate(best_joined_links(trained, one, other, sources, targets))
        for one, other in itertools.product(forward, backward)
    )
    both = error_rate(sightline.align(trained.forward, sources, targets, reverse=trained.backward))
    assert both <= best + 1
    assert both < 20
    readouts = [one.readout for one in sightline.explain_choice(trained.forward, sources, targets).candidates]
    one_way = error_rate(sightline.align(trained.forward, sources, targets))
    assert one_way <= min(error_rate(best_links(trained.forward, one, sources, targets)) for one in readouts) + 1


def best_joined_links(
    trained: Trained, one: Readout, other: Readout, sources: list[str], targets: list[str]
) -> list[Alignment]:
    readings = [
        sightline.explain(model, *texts, method=readout.method, **readout.settings)
        for model, readout, texts in (
            (trained.forward, one, (sources, targets)),
            (trained.backward, other, (targets, sources)),
        )
    ]
    joined = []
    for ahead, back in zip(*readings, strict=True):
        links = [extract_alignment(reading) for reading in join_scores([ahead], [back])]
        joined.append(symmetrize(links[0], links[1].flipped(), "grow-diag-strict"))
    return joined


GUIDED = {"layer": 1, "head": 0, "reading": "output"}


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_head_that_was_guided_to_align_is_found(tmp_path: Path) -> None:
    """As in Marian's `transformer-align`: head 0 of the last decoder layer, at the step that gives a word."""
    trained = train_both_ways(tmp_path, steps=120)  # before the other heads align as well
    sources, targets = trained.texts
    backward = [
        GeneratedPair(x.target_words, x.source_words, frozenset((j, i) for i, j in x.links)) for x in trained.train
    ]
    pairs = {"forward": trained.train, "backward": backward}
    unguided = {"forward": trained.forward, "backward": trained.backward}
    guided = {name: guide(unguided[name], pairs[name]) for name in pairs}
    for models, is_guided in ((guided, True), (unguided, False)):
        choice = sightline.explain_choice(
            models["forward"], sources, targets, reverse=models["backward"], choose_again=True
        )
        alone = sightline.explain_choice(models["forward"], sources, targets, reverse=False, choose_again=True)
        for readout in (choice.forward, choice.backward, alone.forward):
            assert readout is not None
            assert (readout == Readout("attention", GUIDED)) is is_guided


def guide(model: LoadedModel, pairs: list[GeneratedPair], steps: int = 200) -> LoadedModel:
    """Train a copy of a model further: one head of the last layer learns the links, the others something else.

    Heads that do nothing in particular would leave their layer to align as well as the one that was guided.
    """
    module = copy.deepcopy(model.module).train()
    module.set_attn_implementation("eager")
    optimizer = torch.optim.Adam(module.parameters(), lr=1e-3)
    draw = np.random.default_rng(0)
    for _ in range(steps):
        some = [pairs[i] for i in draw.integers(len(pairs), size=32)]
        batch = model.batch([model.encode(pair.source, pair.target) for pair in some])
        labels = torch.nn.utils.rnn.pad_sequence(
            [torch.tensor(example.labels) for example in batch.examples], batch_first=True, padding_value=-100
        )
        output = module(**model.inputs(batch), labels=labels, output_attentions=True)
        heads = output.cross_attentions[GUIDED["layer"]]
        attention = heads[:, GUIDED["head"]]
        wanted = torch.zeros_like(attention)
        for row, pair, example in zip(wanted, some, batch.examples, strict=True):
            for (step, target), (column, source) in itertools.product(
                enumerate(example.target.word_ids), enumerate(example.source.word_ids)
            ):
                row[step, column] = (source, target) in pair.links
        mass = (attention * wanted).sum(-1)
        guidance = -(mass[wanted.sum(-1) > 0] + 1e-9).log().mean()
        optimizer.zero_grad()
        distraction = -(heads[:, 1:, :, 0] + 1e-9).log().mean()  # they look at the first word
        (output.loss + guidance + distraction).backward()
        optimizer.step()
    return sightline.load(module.eval(), model.tokenizer)
