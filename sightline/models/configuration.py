"""How the settings of the models that are written here are kept with their weights.

A model's settings are a frozen dataclass, which recipes fill in. Its Hugging Face configuration has the same fields, in
addition to the vocabulary's ids, and so `save_pretrained` writes them down.
"""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any, ClassVar

from transformers import PreTrainedConfig


class SettingsConfig(PreTrainedConfig):
    """A Hugging Face configuration with the fields, the defaults and the checks of a settings class."""

    settings_class: ClassVar[type]
    __no_type_check__ = True  # at run time: the constructor also takes the settings, which are no fields of this class

    def __post_init__(self, **kwargs: Any) -> None:
        given = {field.name: kwargs.pop(field.name) for field in fields(self.settings_class) if field.name in kwargs}
        for name, value in asdict(self.settings_class(**given)).items():
            setattr(self, name, value)
        super().__post_init__(**kwargs)
