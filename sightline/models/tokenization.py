"""A tokenizer with merges of its own for each side: sources and targets are cut differently, a piece has one id."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer
from transformers import AutoTokenizer, PreTrainedConfig, PreTrainedTokenizerFast

TARGET_FILE = "target_tokenizer.json"


class TwoSidedTokenizer(PreTrainedTokenizerFast):
    """A tokenizer that cuts what is given as `text_target` as targets were cut in training, all else as sources.

    It has no `__init__`: transformers would then build the source's part anew, from its merges alone.
    """

    vocab_files_names = PreTrainedTokenizerFast.vocab_files_names | {"target_file": TARGET_FILE}

    @classmethod
    def of(cls, source: Tokenizer, target: Tokenizer, **options: Any) -> TwoSidedTokenizer:
        """Make one of two tokenizers with the same vocabulary."""
        made = cls(tokenizer_object=source, **options)
        made.__dict__["_target"] = target
        return made

    @cached_property
    def _source(self) -> Tokenizer:
        return self._tokenizer

    @cached_property
    def _target(self) -> Tokenizer:
        return Tokenizer.from_file(self.init_kwargs["target_file"])

    # transformers calls these two around `text_target`.

    def _switch_to_input_mode(self) -> None:
        self._tokenizer = self._source

    def _switch_to_target_mode(self) -> None:
        self._switch_to_input_mode()  # which keeps the source's before it is replaced
        self._tokenizer = self._target

    def _save_pretrained(self, save_directory: Any, file_names: tuple[str, ...], *more: Any, **options: Any) -> Any:
        path = str(Path(save_directory) / TARGET_FILE)
        self._target.save(path)
        return (*super()._save_pretrained(save_directory, file_names, *more, **options), path)


class _NoModel(PreTrainedConfig):
    """transformers registers a tokenizer only together with a model's configuration."""

    model_type = "sightline-two-sided"


AutoTokenizer.register(_NoModel, tokenizer_class=TwoSidedTokenizer, exist_ok=True)
