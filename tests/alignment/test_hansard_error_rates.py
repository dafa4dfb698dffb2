"""The statistical aligners on the Hansards, beside the figures measured with fast_align on the same pairs."""

import time

import pytest

from sightline.alignment.bitext import build_bitext
from sightline.alignment.error_rate import score_alignments
from sightline.alignment.position_model import train_diagonal
from sightline.alignment.statistical import ALIGNERS, TwoWayAligner, train_aligner
from sightline.data.hansard import read_test_set, read_training_pairs

EFLOMAL = 8.0  # grow-diag-strict, trained with the test set
FAST_ALIGN = {"forward": 17.2, "reverse": 16.1, "grow-diag-strict": 10.75}


def error_rates(aligner, test):
    forward = list(aligner.forward.align(test.pairs))
    reverse = [alignment.flipped() for alignment in aligner.backward.align((fr, en) for en, fr in test.pairs)]
    found = {
        "forward": forward,
        "reverse": reverse,
        "grow-diag-strict": aligner.align(test.pairs, "grow-diag-strict"),
    }
    return {name: score_alignments(alignments, test.gold).aer.value for name, alignments in found.items()}


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_error_rates_and_speed(hansard, capsys):
    test = read_test_set(hansard)
    training = [(english.split(), french.split()) for english, french in read_training_pairs(hansard)]
    train_diagonal(build_bitext(training[:10]))  # compiled before the clock starts
    started = time.process_time()
    together = build_bitext([*training, *test.pairs])
    forward = train_diagonal(together)
    seconds = time.process_time() - started

    measured = {"diagonal": error_rates(TwoWayAligner(forward, train_diagonal(together.flipped())), test)}
    without_test_set = build_bitext(training)
    for name in ALIGNERS:
        online = train_aligner(without_test_set, name)
        measured[f"{name}, trained without the test set"] = error_rates(online, test)
    with capsys.disabled():
        print(f"\ndiagonal, one direction: {seconds:.1f} s of processor time")
        for name, figures in measured.items():
            print(name, {direction: round(figure, 1) for direction, figure in figures.items()})

    for direction, figure in FAST_ALIGN.items():
        assert measured["diagonal"][direction] < figure + 1
        assert measured["diagonal, trained without the test set"][direction] < figure + 2
    assert measured["ibm1, trained without the test set"]["grow-diag-strict"] < 20
    assert measured["hmm, trained without the test set"]["grow-diag-strict"] < EFLOMAL
    assert seconds < 18, "9 seconds on two cores"
