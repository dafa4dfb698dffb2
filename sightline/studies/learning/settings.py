"""The sizes of the study of how attention learns: minutes, hours on 2 cores, and the paper's own (A.8)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sightline.studies.learning.text import TextSettings
from sightline.studies.learning.toy_models import CopySettings, KeywordSettings
from sightline.studies.learning.toy_steps import ToySettings


@dataclass(frozen=True)
class LearningSettings:
    """The sizes of all parts of the study."""

    classify: TextSettings
    translate: TextSettings
    toys: ToySettings
    widths: tuple[int, ...] = (2**6, 2**8, 2**10, 2**12, 2**14)
    """The widths at which the proxy's first step is compared with the count table."""


QUICK = LearningSettings(
    classify=TextSettings(
        sets=("sst", "agnews"),
        width=32,
        embedding_width=64,
        layers=1,
        vocabulary=8000,
        steps=250,
        batch=32,
        learning_rate=3e-3,
        dropout=0.0,
        max_words=60,
        measured=100,
    ),
    translate=TextSettings(
        sets=("multi30k",),
        width=64,
        embedding_width=64,
        layers=1,
        vocabulary=1000,
        steps=1000,
        batch=32,
        learning_rate=3e-3,
        dropout=0.1,
        max_words=20,
        measured=60,
        train_sentences=10_000,
        bleu_sentences=20,
    ),
    toys=ToySettings(
        length=20,
        words=30,
        seeds=5,
        copy=CopySettings(width=64, batch=64, steps=300, every=25),
        keyword=KeywordSettings(width=64, length=20, words=20, batch=64, steps=200, every=10, test_examples=256),
        heads=8,
        head_seeds=2,
        wanted_heads=4,
        candidates=10,
    ),
)
STANDARD = LearningSettings(
    classify=TextSettings(
        sets=("imdb", "agnews", "20news-sports", "sst", "yelp"),
        width=256,
        embedding_width=300,
        layers=1,
        vocabulary=20_000,
        steps=700,
        batch=32,
        learning_rate=1e-3,
        dropout=0.0,
        max_words=80,
        measured=300,
        long_steps=dict.fromkeys(("imdb", "agnews", "20news-sports", "sst", "yelp"), 1500),
        second_runs=2,
    ),
    translate=TextSettings(
        sets=("multi30k",),
        width=256,
        embedding_width=256,
        layers=2,
        vocabulary=4000,
        steps=2000,
        batch=32,
        learning_rate=2e-3,
        dropout=0.2,
        max_words=25,
        measured=200,
        train_sentences=100_000,
        bleu_sentences=200,
        long_steps={"multi30k": 5000},
        second_runs=2,
    ),
    toys=ToySettings(
        length=40,
        words=60,
        seeds=6,
        copy=CopySettings(width=256, batch=128, steps=200, every=10),
        keyword=KeywordSettings(width=256, length=40, words=40, batch=32, steps=500, every=10),
        heads=8,
        head_seeds=3,
        wanted_heads=3,
        candidates=10,
        merges=("mean",),
    ),
)
PAPER = LearningSettings(
    classify=replace(
        STANDARD.classify, vocabulary=65_000, steps=4000, max_words=1000, measured=4000, long_steps={}, second_runs=5
    ),
    translate=replace(
        STANDARD.translate,
        sets=("multi30k", "hansard-en-fr"),
        vocabulary=8000,
        steps=49_500,
        batch=16,
        learning_rate=1e-3,
        dropout=0.5,
        max_words=100,
        measured=1014,
        train_sentences=None,
        bleu_sentences=1014,
        long_steps={},
        second_runs=5,
    ),
    toys=replace(STANDARD.toys, seeds=20, wanted_heads=8, candidates=200, merges=("mean", "sum")),
)
