"""See which inputs a neural text model used for each output.

The public names are loaded when they are first used, so that `import sightline` stays quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from sightline.errors import InputError

if TYPE_CHECKING:
    from sightline.attend.watch import watch
    from sightline.attribution import Attribution, Tokens, load_attributions, save_attributions
    from sightline.models.loading import load
    from sightline.verbs import explain

__version__ = "0.1.0"

__all__ = [
    "Attribution",
    "InputError",
    "Tokens",
    "explain",
    "load",
    "load_attributions",
    "save_attributions",
    "watch",
]

_HOME = {
    "Attribution": "sightline.attribution",
    "Tokens": "sightline.attribution",
    "load_attributions": "sightline.attribution",
    "save_attributions": "sightline.attribution",
    "watch": "sightline.attend.watch",
    "load": "sightline.models.loading",
    "explain": "sightline.verbs",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'sightline' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__
