"""Saved choices: next to the model in its folder, or, where there is none, as long as the model is in memory.

A choice belongs to the weights of both models, to what is put around a source, and to what the user fixed.
"""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from torch import nn

from sightline.errors import InputError
from sightline.json_files import read_json, write_json
from sightline.models.box import is_in_box
from sightline.models.fingerprints import digest, weights_of
from sightline.models.loaded import LoadedModel
from sightline.verbs.align_options import AlignOptions
from sightline.verbs.readout import Choice

FILE_NAME = "sightline-align.json"
FILE_FORMAT = 2

_in_memory: WeakKeyDictionary[nn.Module, dict[str, Choice]] = WeakKeyDictionary()


def recall(model: LoadedModel, reverse: LoadedModel | None, options: AlignOptions) -> Choice | None:
    """Return the choice made before for these models and these options, if there is one."""
    key = _key(model, reverse, options)
    choice = _in_memory.get(model.module, {}).get(key)
    if choice is None:
        try:
            choice = Choice.from_dict(_read_choices(model)[key])
        except (KeyError, TypeError, ValueError, AttributeError):  # none, or damaged: it is chosen anew
            return None
    return replace(choice, is_remembered=True)


def remember(model: LoadedModel, reverse: LoadedModel | None, options: AlignOptions, choice: Choice) -> Path | None:
    """Keep a choice, in memory and in the model's folder; return the file, None where none could be written."""
    key = _key(model, reverse, options)
    _in_memory.setdefault(model.module, {})[key] = choice
    path = _file(model)
    if path is None or is_in_box(path):
        return None
    choices = _read_choices(model) | {key: choice.to_dict()}
    try:
        write_json(path, {"format": FILE_FORMAT, "choices": choices})
    except InputError:  # a folder that cannot be written
        return None
    return path


def _read_choices(model: LoadedModel) -> dict[str, Any]:
    path = _file(model)
    if path is None or not path.is_file():
        return {}
    try:
        plain = read_json(path, {"format": int, "choices": dict}, "It is chosen anew.")
    except InputError:
        return {}
    return plain["choices"] if plain["format"] == FILE_FORMAT else {}


def _file(model: LoadedModel) -> Path | None:
    folder = model.module.config.name_or_path
    return Path(folder, FILE_NAME) if folder and Path(folder).is_dir() else None


def _key(model: LoadedModel, reverse: LoadedModel | None, options: AlignOptions) -> str:
    models = [None if one is None else [digest(weights_of(one.module)), asdict(one.prompt)] for one in (model, reverse)]
    return digest(json.dumps([models, options.of_the_choice()], sort_keys=True, default=str).encode())
