"""Loading: a Hugging Face name, a folder or a model object becomes a `LoadedModel`."""

from __future__ import annotations

import copy
import os
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, cast

import torch
import transformers
from torch import nn
from transformers import AutoConfig, AutoTokenizer, GenerationConfig, PreTrainedModel

import sightline.models.tokenization  # noqa: F401  (AutoTokenizer then knows our own)
from sightline.errors import InputError
from sightline.models.box import BOX_MODEL, find_in_box
from sightline.models.budget import read_size
from sightline.models.classifier import ClassifierForSequenceClassification
from sightline.models.conv import ConvForConditionalGeneration
from sightline.models.directions import choose_direction, language_token, languages_both_ways, names_direction
from sightline.models.loaded import LoadedModel
from sightline.models.lstm import LstmForConditionalGeneration
from sightline.models.names import TASKS, Task, check_folder
from sightline.models.packed import has_packed, read_packed
from sightline.models.saved_adapter import REVERSE, read_adapters
from sightline.models.saved_calibration import attach_saved_calibration
from sightline.models.tasks import Prompt
from sightline.text.languages import FILE_NAME as GUESS_FILE
from sightline.text.languages import LanguageGuess, read_language_guess

# The models that are written here, by the name of their class; transformers finds their configurations by these too.
OURS: dict[str, Any] = {
    cls.__name__: cls
    for cls in (LstmForConditionalGeneration, ConvForConditionalGeneration, ClassifierForSequenceClassification)
}
for _cls in OURS.values():
    AutoConfig.register(_cls.config_class.model_type, _cls.config_class, exist_ok=True)

DEFAULT_MEMORY = "2GB"
_speaking = threading.RLock()
SAVE_IT = "save it next to the model with save_pretrained, or load(model, tokenizer=...)."


def load(
    model: str | os.PathLike[str] | nn.Module | LoadedModel = BOX_MODEL,
    tokenizer: Any = None,
    *,
    device: str | torch.device | None = None,
    dtype: str | torch.dtype | None = None,
    source_lang: str | None = None,
    target_lang: str | None = None,
    prefix: str = "",
    chat: bool = False,
    max_memory: int | str = DEFAULT_MEMORY,
) -> LoadedModel:
    """Load a model so that every method can ask it.

    `model` is a Hugging Face name, a folder or a model object (then with its tokenizer); without one it is `en-es`, the
    model in the box (`en-es-calibrated`: with calibrated attention). Languages are for multilingual translation models
    and for those that translate both ways, which recognise the language of each text where none is named. `prefix` is
    put before every source (T5), `chat` wraps the source in the tokenizer's chat template. `max_memory` bounds what a
    method holds in addition to the model itself. A tokenizer object stays as it is: where languages are given,
    they are set on a copy. A model that is loaded already is returned as it is.
    """
    if isinstance(model, LoadedModel):
        _check_nothing_given(
            tokenizer=tokenizer is not None,
            device=device,
            dtype=dtype,
            source_lang=source_lang,
            target_lang=target_lang,
            prefix=prefix,
            chat=chat,
            max_memory=max_memory != DEFAULT_MEMORY,
        )
        return model
    if isinstance(model, str | os.PathLike):
        calibration = Path(model)
        if (in_box := find_in_box(os.fspath(model))) is not None:
            model, calibration = in_box
            dtype = dtype or torch.float32  # its weights are kept in fewer bits, to be small
        module = _load_module(os.fspath(model), dtype)
        attach_saved_calibration(module, calibration)
        tokenizer = tokenizer if tokenizer is not None else os.fspath(model)
    else:
        module = _unwrap(model)
        if dtype is not None:
            module = module.to(dtype=_dtype(dtype))
        tokenizer = tokenizer if tokenizer is not None else module.config.name_or_path
    if device is not None:
        _move(module, device)
    if isinstance(tokenizer, str | os.PathLike):
        tokenizer = _load_tokenizer(os.fspath(tokenizer))
    elif source_lang is not None or target_lang is not None:
        tokenizer = copy.deepcopy(tokenizer)
    task = _task(module)
    prompt = _prompt(tokenizer, source_lang, target_lang, prefix, chat)
    guess = None
    if isinstance(model, str | os.PathLike) and not names_direction(source_lang, target_lang, prefix):
        guess = _language_guess(Path(model), tokenizer)
    loaded = LoadedModel(module, tokenizer, task, prompt, read_size(max_memory), guess)
    if isinstance(model, str | os.PathLike):
        module.eval()
        _add_adapters(loaded, Path(model), dtype, max_memory)
    return loaded


def _language_guess(folder: Path, tokenizer: Any) -> LanguageGuess | None:
    """Read how to recognise the direction of a text, for a model that translates both ways."""
    languages = languages_both_ways(tokenizer)
    guess = None if languages is None else read_language_guess(folder)
    if guess is not None and set(guess.languages) != set(languages or ()):
        raise InputError(
            f"{folder / GUESS_FILE} tells {' from '.join(guess.languages)}, and the model there translates between "
            f"{' and '.join(languages or ())}: remove the file, or restore it from a copy."
        )
    return guess


def _add_adapters(loaded: LoadedModel, folder: Path, dtype: str | torch.dtype | None, max_memory: int | str) -> None:
    """Add to a model the alignment adapters of its folder, and the model of the other direction that lies inside it."""
    loaded.adapters.update((name, adapter.to(loaded.device)) for name, adapter in read_adapters(folder).items())
    reverse = folder / REVERSE
    if reverse.is_dir():
        loaded.load_reverse = lambda: load(reverse, device=loaded.device, dtype=dtype, max_memory=max_memory)


def _check_nothing_given(**options: Any) -> None:
    """Refuse options for a model that is loaded already."""
    if given := [name for name, value in options.items() if value]:
        raise InputError(
            f"The model is loaded already, so {' and '.join(given)} cannot be changed: "
            "load its name or folder with these options, or its module and tokenizer."
        )


def _load_module(name: str, dtype: str | torch.dtype | None) -> PreTrainedModel:
    check_folder(name)
    try:
        config = AutoConfig.from_pretrained(name)
        architecture = str((config.architectures or [""])[0])
        cls: Any = OURS.get(architecture) or getattr(transformers, architecture, None)
        if not _is_model_class(cls):
            raise InputError(
                f"{name} is a {architecture or 'model of an unnamed class'}, which is no model that transformers has."
            )
        # Safetensors first, else .bin by torch's restricted unpickler; code from a hub is never run.
        options: dict[str, Any] = {} if dtype is None else {"dtype": _dtype(dtype)}
        with _quietly():
            module, report = _from_pretrained(cls, name, config, options)
    except InputError:
        raise
    except UnpicklingError as error:
        raise InputError(
            f"The weights of {name!r} are damaged or hold code, which is never run: ask for them as safetensors."
        ) from error
    except RuntimeError as error:
        raise InputError(f"The weights of {name!r} do not fit its config.json: take both from one place.") from error
    except Exception as error:  # nonsense in its files makes transformers fail in any way
        raise InputError(f"The model {name!r} cannot be loaded: {_first_line(error)}") from error
    if missing := sorted(report["missing_keys"]):  # transformers would fill them at random
        raise InputError(
            f"The model {name!r} lacks {len(missing)} of its weights, {missing[0]} among them: "
            f"its files are not complete, or not those of a {architecture}."
        )
    _check_special_ids(module, name)
    return module


@contextmanager
def _quietly() -> Iterator[None]:
    """Keep from users what transformers says while it loads: a bar over weights, and to install sacremoses.

    Bars of downloads stay. The lock is there because bars and warnings are switched for all threads at once.
    """

    def hide(make: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        return make(*args, **options | ({"disable": True} if options.get("desc") == "Loading weights" else {}))

    with _speaking, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*sacremoses")
        before = transformers.utils.logging.set_tqdm_hook(hide)
        try:
            yield
        finally:
            transformers.utils.logging.set_tqdm_hook(before)


def _is_model_class(found: Any) -> bool:
    """Return whether a name of transformers is a model, not a function, a tokenizer or nothing."""
    return isinstance(found, type) and issubclass(found, PreTrainedModel)


def _from_pretrained(cls: Any, name: str, config: Any, options: dict[str, Any]) -> tuple[PreTrainedModel, Any]:
    """Load a model by transformers, which is given the weights where they are packed."""
    if not has_packed(Path(name)):
        return cls.from_pretrained(name, output_loading_info=True, **options)
    weights = read_packed(Path(name))
    module, report = cls.from_pretrained(None, config=config, state_dict=weights, output_loading_info=True, **options)
    module.config.name_or_path = module.name_or_path = name
    if module.can_generate():
        module.generation_config = GenerationConfig.from_pretrained(name)
    return module, report


def _check_special_ids(module: PreTrainedModel, name: str) -> None:
    """Refuse special tokens that are no ids in the generation's configuration: decoding would fail on them."""
    for key in ("bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id"):
        value = getattr(getattr(module, "generation_config", None), key, None)
        ids = value if isinstance(value, list) else [value]
        if not all(one is None or (type(one) is int and 0 <= one < 2**31) for one in ids):
            raise InputError(f"The model {name!r} cannot be loaded: {key} in its generation_config.json is {value!r}.")
    start = getattr(module.config, "decoder_start_token_id", None)
    size = getattr(module.config.get_text_config(), "vocab_size", None)
    if start is not None and size is not None and not (type(start) is int and 0 <= start < size):
        raise InputError(
            f"The model {name!r} cannot be loaded: decoder_start_token_id in its config.json is {start!r}, and it has "
            f"{size} pieces."
        )


def _move(module: nn.Module, device: str | torch.device) -> None:
    try:
        module.to(device)
    except (RuntimeError, AssertionError) as error:
        raise InputError(f"The device {str(device)!r} cannot be used: {_first_line(error)}") from error


def _load_tokenizer(name: str) -> Any:
    if not name:
        raise InputError("A model object needs its tokenizer: load(model, tokenizer=...).")
    check_folder(name)
    try:
        with _quietly():
            tokenizer = AutoTokenizer.from_pretrained(name)
        tokenizer("a")
        vocabulary = tokenizer.get_vocab()
        if not all(type(number) is int and number >= 0 for number in vocabulary.values()):
            raise ValueError("a piece of its vocabulary has no number")
        known = vocabulary.keys() - tokenizer.get_added_vocab().keys()
    except Exception as error:  # files that are not there, or are damaged, make it fail in any way, perhaps only in use
        raise InputError(f"The tokenizer of {name!r} cannot be loaded ({_first_line(error)}): {SAVE_IT}") from error
    if len(known) <= 1:
        # transformers builds some classes from nothing: special tokens and perhaps a space.
        raise InputError(f"The tokenizer of {name!r} has no vocabulary: {SAVE_IT}")
    return tokenizer


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0].rstrip(" :") if str(error).strip() else type(error).__name__


def _dtype(dtype: str | torch.dtype) -> torch.dtype:
    if isinstance(dtype, torch.dtype):
        return dtype
    found = getattr(torch, dtype, None)
    if not isinstance(found, torch.dtype) or not found.is_floating_point:
        raise InputError(f"There is no data type {dtype!r}: use float32, bfloat16 or float16.")
    return found


def _unwrap(model: nn.Module) -> PreTrainedModel:
    """Take the model out of torch.compile's and PEFT's wrapping; what LoRA injected stays in it."""
    model = getattr(model, "_orig_mod", model)
    if hasattr(model, "peft_config"):
        if any(config.is_prompt_learning for config in cast(Any, model).peft_config.values()):
            raise InputError("A prompt-tuned model has inputs that are no tokens: load its base model instead.")
        if hasattr(model, "get_base_model"):
            model = cast(Any, model).get_base_model()
    if any(module._compiled_call_impl is not None or hasattr(module, "_orig_mod") for module in model.modules()):
        raise InputError(
            f"{type(model).__name__} is compiled in place, which hides its attention: load it before compiling it."
        )
    if not isinstance(model, PreTrainedModel):
        raise InputError(
            f"{type(model).__name__} is not a Hugging Face model: give a PreTrainedModel, a folder or a name."
        )
    return model


def _task(module: PreTrainedModel) -> Task:
    name = type(module).__name__
    task = next((task for ending, task in TASKS if name.endswith(ending)), None)
    if task == "classify" and module.config.is_encoder_decoder:
        raise InputError(f"{name} classifies with a decoder after its encoder, which Sightline does not explain yet.")
    if task == "classify" and module.config.num_labels == 1:  # the log-probability of an only label is always 0
        raise InputError(f"{name} gives one number, not one of several labels, which Sightline does not explain yet.")
    if task is not None:
        return task
    if module.base_model is module and not module.config.is_encoder_decoder:
        return "represent"
    endings = ", ".join(ending for ending, _ in TASKS)
    raise InputError(f"{name} is not a model that Sightline can explain: its class should end with {endings}.")


def _prompt(tokenizer: Any, source_lang: str | None, target_lang: str | None, prefix: str, chat: bool) -> Prompt:
    if chat and not getattr(tokenizer, "chat_template", None):
        raise InputError("This tokenizer has no chat template: load the model without chat.")
    if (languages := languages_both_ways(tokenizer)) is not None:
        return choose_direction(languages, source_lang, target_lang, prefix)
    for attribute, lang in (("src_lang", source_lang), ("tgt_lang", target_lang)):
        if lang is None:
            continue
        if hasattr(tokenizer, attribute):
            if lang not in _languages(tokenizer):
                raise InputError(
                    f"This tokenizer does not know the language {lang!r}: "
                    "M2M100 writes en, mBART en_XX and NLLB eng_Latn, for example."
                )
            setattr(tokenizer, attribute, lang)
        elif attribute == "tgt_lang" and language_token(lang) in tokenizer.get_vocab():
            prefix = f"{language_token(lang)} {prefix}"  # OPUS-MT's multilingual models
        else:
            raise InputError(f"{type(tokenizer).__name__} takes no language: load the model without {lang!r}.")
    return Prompt(source_lang, target_lang, prefix, chat)


def _languages(tokenizer: Any) -> set[str]:
    """Name the languages of a multilingual tokenizer; NLLB's are found only among its special tokens."""
    return set(getattr(tokenizer, "lang_code_to_id", None) or tokenizer.all_special_tokens)
