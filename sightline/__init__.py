"""See which inputs a neural text model used for each output.

The public names are loaded when they are first used, so that `import sightline` stays quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from sightline.errors import InputError, missing_package
from sightline.version import __version__ as __version__

if TYPE_CHECKING:
    from sightline.alignment.error_rate import score_alignments as score
    from sightline.alignment.links import Alignment
    from sightline.attend.watch import watch
    from sightline.attribution import Attribution, Tokens, load_attributions, save_attributions
    from sightline.faithfulness import measure_faithfulness
    from sightline.models.loading import load
    from sightline.training.adapting import adapt
    from sightline.training.loop import train
    from sightline.verbs.aligning import align, explain_choice
    from sightline.verbs.calibrating import calibrate
    from sightline.verbs.comparing import compare_calibration
    from sightline.verbs.contrasting import Alternative, alternatives, contrast
    from sightline.verbs.explaining import explain
    from sightline.verbs.streaming import AlignedWord, AlignmentStreamer, stream_translation
    from sightline.verbs.translating import Translation, transfer_markup, translate, translate_markup

__all__ = [
    "AlignedWord",
    "Alignment",
    "AlignmentStreamer",
    "Alternative",
    "Attribution",
    "InputError",
    "Tokens",
    "Translation",
    "adapt",
    "align",
    "alternatives",
    "calibrate",
    "compare_calibration",
    "contrast",
    "explain",
    "explain_choice",
    "load",
    "load_attributions",
    "measure_faithfulness",
    "save_attributions",
    "score",
    "stream_translation",
    "train",
    "transfer_markup",
    "translate",
    "translate_markup",
    "watch",
]

_HOME = {
    "Attribution": "sightline.attribution",
    "Tokens": "sightline.attribution",
    "load_attributions": "sightline.attribution",
    "save_attributions": "sightline.attribution",
    "watch": "sightline.attend.watch",
    "load": "sightline.models.loading",
    "calibrate": "sightline.verbs.calibrating",
    "compare_calibration": "sightline.verbs.comparing",
    "Alternative": "sightline.verbs.contrasting",
    "alternatives": "sightline.verbs.contrasting",
    "contrast": "sightline.verbs.contrasting",
    "explain": "sightline.verbs.explaining",
    "align": "sightline.verbs.aligning",
    "explain_choice": "sightline.verbs.aligning",
    "train": "sightline.training.loop",
    "adapt": "sightline.training.adapting",
    "translate": "sightline.verbs.translating",
    "Translation": "sightline.verbs.translating",
    "transfer_markup": "sightline.verbs.translating",
    "translate_markup": "sightline.verbs.translating",
    "AlignedWord": "sightline.verbs.streaming",
    "AlignmentStreamer": "sightline.verbs.streaming",
    "stream_translation": "sightline.verbs.streaming",
    "Alignment": "sightline.alignment.links",
    "measure_faithfulness": "sightline.faithfulness",
    "score": "sightline.alignment.error_rate",
}
# What has a longer name at home.
_NAMES_AT_HOME = {"score": "score_alignments"}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'sightline' has no attribute {name!r}")
    try:
        home = import_module(_HOME[name])
    except ImportError as error:
        raise missing_package(f"sightline.{name}", error) from None
    return getattr(home, _NAMES_AT_HOME.get(name, name))


def __dir__() -> list[str]:
    return __all__
