"""Loading: a Hugging Face name, a folder or a model object becomes a `LoadedModel`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, cast

import torch
import transformers
from torch import nn
from transformers import AutoConfig, AutoTokenizer, PreTrainedModel

from sightline.errors import InputError
from sightline.models.loaded import LoadedModel, Prompt, Task

# How the name of a model's class tells what it does; the first that fits counts.
TASKS: tuple[tuple[str, Task], ...] = (
    ("ForSequenceClassification", "classify"),
    ("ForMaskedLM", "fill"),
    ("ForConditionalGeneration", "translate"),
    ("MTModel", "translate"),
    ("ForCausalLM", "continue"),
    ("LMHeadModel", "continue"),
)

TASK_SUMMARIES: dict[Task, str] = {
    "classify": "the label",
    "fill": "the word in each gap",
    "translate": "each token of the translation, or of another text made from the source",
    "continue": "each token of the continuation; the prompt is the source",
    "represent": "nothing is predicted: attention and norms only",
}


def load(
    model: str | os.PathLike[str] | nn.Module | LoadedModel,
    tokenizer: Any = None,
    *,
    device: str | torch.device | None = None,
    dtype: str | torch.dtype | None = None,
    source_lang: str | None = None,
    target_lang: str | None = None,
    prefix: str = "",
    chat: bool = False,
) -> LoadedModel:
    """Load a model so that every method can ask it.

    `model` is a Hugging Face name, a folder or a model object (then with its tokenizer). Languages are for
    multilingual translation models, `prefix` is put before every source (T5), `chat` wraps the source in the
    tokenizer's chat template.
    """
    if isinstance(model, LoadedModel):
        return model
    if isinstance(model, str | os.PathLike):
        module = _load_module(os.fspath(model), dtype)
        tokenizer = tokenizer if tokenizer is not None else os.fspath(model)
    else:
        module = _unwrap(model)
        if dtype is not None:
            module = module.to(dtype=_dtype(dtype))
        tokenizer = tokenizer if tokenizer is not None else module.config.name_or_path
    if device is not None:
        module.to(device)
    if isinstance(tokenizer, str | os.PathLike):
        tokenizer = _load_tokenizer(os.fspath(tokenizer))
    task = _task(module)
    prompt = _prompt(tokenizer, source_lang, target_lang, prefix, chat)
    if isinstance(model, str | os.PathLike):
        module.eval()
    return LoadedModel(module, tokenizer, task, prompt)


def _load_module(name: str, dtype: str | torch.dtype | None) -> PreTrainedModel:
    _check_path(name)
    try:
        config = AutoConfig.from_pretrained(name)
        architecture = (config.architectures or [""])[0]
        cls = getattr(transformers, architecture, None)
        if cls is None:
            raise InputError(
                f"{name} is a {architecture or 'model of an unnamed class'}, which transformers does not have."
            )
        # Safetensors first, else .bin by torch's restricted unpickler; code from a hub is never run.
        options: dict[str, Any] = {} if dtype is None else {"dtype": _dtype(dtype)}
        return cls.from_pretrained(name, **options)
    except (OSError, ValueError) as error:
        raise InputError(f"The model {name!r} cannot be loaded: {_first_line(error)}") from error


def _load_tokenizer(name: str) -> Any:
    if not name:
        raise InputError("A model object needs its tokenizer: load(model, tokenizer=...).")
    _check_path(name)
    try:
        return AutoTokenizer.from_pretrained(name)
    except (OSError, ValueError, ImportError) as error:
        raise InputError(f"The tokenizer of {name!r} cannot be loaded: {_first_line(error)}") from error


def _check_path(name: str) -> None:
    looks_like_path = name.startswith((".", "/", "~")) or name.count("/") > 1
    if looks_like_path and not Path(name).is_dir():
        raise InputError(
            f"There is no folder {name!r}: give a folder with a saved model, or a model's name on the hub."
        )


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


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
    if not isinstance(model, PreTrainedModel):
        raise InputError(
            f"{type(model).__name__} is not a Hugging Face model: give a PreTrainedModel, a folder or a name."
        )
    return model


def _task(module: PreTrainedModel) -> Task:
    name = type(module).__name__
    task = next((task for ending, task in TASKS if name.endswith(ending)), None)
    if task == "classify" and module.config.is_encoder_decoder:
        raise InputError(f"{name} classifies with a decoder behind its encoder, which Sightline does not explain yet.")
    if task is not None:
        return task
    if module.base_model is module and not module.config.is_encoder_decoder:
        return "represent"
    endings = ", ".join(ending for ending, _ in TASKS)
    raise InputError(f"{name} is not a model that Sightline can explain: its class should end with {endings}.")


def _prompt(tokenizer: Any, source_lang: str | None, target_lang: str | None, prefix: str, chat: bool) -> Prompt:
    if chat and not getattr(tokenizer, "chat_template", None):
        raise InputError("This tokenizer has no chat template: load the model without chat.")
    for attribute, lang in (("src_lang", source_lang), ("tgt_lang", target_lang)):
        if lang is None:
            continue
        if hasattr(tokenizer, attribute):
            try:
                setattr(tokenizer, attribute, lang)
            except KeyError:
                raise InputError(f"This tokenizer does not know the language {lang!r}.") from None
        elif attribute == "tgt_lang" and f">>{lang}<<" in getattr(tokenizer, "supported_language_codes", ()):
            prefix = f">>{lang}<< {prefix}"  # OPUS-MT's multilingual models
        else:
            raise InputError(f"{type(tokenizer).__name__} takes no language: load the model without {lang!r}.")
    return Prompt(source_lang, target_lang, prefix, chat)
