"""The methods in plain sentences, with what they cost, for those who pick one on the page."""

from __future__ import annotations

from typing import NamedTuple


class Wording(NamedTuple):
    """What a method tells, and its cost relative to one pass of the model."""

    does: str
    cost: str


ONE_PASS, BACKWARD, MANY = "one pass", "a pass there and back", "many passes"

WORDINGS = {
    "attention": Wording("Where the model looked while it wrote each word.", ONE_PASS),
    "norms": Wording("Where it looked, weighed by how much it took from there.", ONE_PASS),
    "rollout": Wording("Where it looked, followed through all layers.", ONE_PASS),
    "alti": Wording("What each layer passed on, followed through all layers.", ONE_PASS),
    "gradient": Wording("Which words it was most sensitive to.", BACKWARD),
    "saliency": Wording("Sensitivity as Inseq measures it.", BACKWARD),
    "word_saliency": Wording("Which words pushed for or against each output.", BACKWARD),
    "input_x_gradient": Wording("Input times gradient as Inseq measures it.", BACKWARD),
    "hidden_gradient": Wording("Sensitivity to what the encoder made of each word.", BACKWARD),
    "integrated_gradients": Wording("Credit for each word, added up on the way from an empty input.", MANY),
    "erasure": Wording("What changes when a word is left out.", "one pass for each word"),
    "occlusion": Wording("What changes when a word is unknown, as Inseq measures it.", "one pass for each word"),
    "hidden_erasure": Wording("What changes when the encoder forgets a word.", "one pass for each word"),
    "value_zeroing": Wording("What changes when nothing can be taken from a word.", "one pass for each word"),
    "perturbation_mask": Wording("The fewest words without which the output is lost, searched for.", MANY),
    "adapter": Wording("Where each word came from, as a small module has learned to tell.", ONE_PASS),
    "lexical_probe": Wording("What each word alone would have the model say.", "one pass for each word"),
    "best_attention": Wording("Where it should have looked, by that probe.", "one pass for each word"),
}
