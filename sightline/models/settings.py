"""Settings of the models that are written here, and how they are kept with the weights.

A model's settings are a frozen dataclass, which recipes fill in. Its Hugging Face configuration has the same fields,
beside the vocabulary's ids, and so `save_pretrained` writes them down.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, fields
from typing import Any, ClassVar

from transformers import PreTrainedConfig

from sightline.errors import InputError, unknown_name


class SettingsConfig(PreTrainedConfig):
    """A Hugging Face configuration with the fields, the defaults and the checks of a settings class."""

    settings_class: ClassVar[type]
    __no_type_check__ = True  # at run time: the constructor also takes the settings, which are no fields of this class

    def __post_init__(self, **kwargs: Any) -> None:
        given = {field.name: kwargs.pop(field.name) for field in fields(self.settings_class) if field.name in kwargs}
        for name, value in asdict(self.settings_class(**given)).items():
            setattr(self, name, value)
        super().__post_init__(**kwargs)


def check_counts(settings: Any, names: Iterable[str]) -> None:
    """Refuse a number of layers, heads or the like that is less than 1."""
    for name in names:
        if getattr(settings, name) < 1:
            raise InputError(f"{name} is {getattr(settings, name)}: it must be at least 1.")


def check_share(settings: Any, name: str) -> None:
    """Refuse a share that is negative, or everything."""
    if not 0 <= getattr(settings, name) < 1:
        raise InputError(f"{name} is {getattr(settings, name)}: it must be at least 0 and less than 1.")


def check_choice(settings: Any, name: str, valid: Iterable[str]) -> None:
    """Refuse a name that is none of the valid ones."""
    if getattr(settings, name) not in valid:
        raise unknown_name(name, str(getattr(settings, name)), valid)
