"""A loaded model: any Hugging Face model, or one of ours, as one thing that methods can ask.

It turns texts into examples and batches, gives log-probabilities of outputs from one teacher-forced pass, lets input
embeddings be changed, names its attention layers by kind, and generates.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers.utils import ModelOutput

from sightline.attend.alignment import AlignmentAdapter
from sightline.attend.calibration import NAME as CALIBRATION
from sightline.attend.calibration import Calibration
from sightline.attribution import Tokens
from sightline.errors import InputError
from sightline.files import explained_errors, writing_into
from sightline.forking import begin_threads
from sightline.models.directions import forced_start, languages_both_ways, other_direction
from sightline.models.embeddings import (
    EmbeddingChange,
    EmbeddingSite,
    changed_embeddings,
    count_positions,
    embedding_site,
)
from sightline.models.evaluating import evaluating
from sightline.models.examples import Batch, Example, build_batch
from sightline.models.inspection import AttentionLayer, find_attention
from sightline.models.names import ATTENTION_KINDS, Task
from sightline.models.saved_adapter import save_adapters
from sightline.models.saved_calibration import save_calibration
from sightline.models.states import EncoderOutput, States, take_rows
from sightline.models.tasks import TEXTS, ClassificationTexts, GapTexts, Prompt
from sightline.text.languages import LanguageGuess
from sightline.text.words import Source, Text, decode, split_segments, split_words


class LoadedModel:
    """A model with its tokenizer. Made by `sightline.load`."""

    def __init__(
        self,
        module: Any,
        tokenizer: Any,
        task: Task,
        prompt: Prompt,
        max_memory: int,
        guess: LanguageGuess | None = None,
    ) -> None:
        self.module = module
        self.tokenizer = tokenizer
        self.task = task
        self.prompt = prompt
        self.texts = TEXTS[task](module, tokenizer, prompt)
        self.max_memory = max_memory
        self.guess = guess
        """How to recognise the direction that a text is to be translated in; None where it is fixed."""
        self.adapters: dict[str, AlignmentAdapter] = {}
        """The alignment adapters, by `direction`; both directions of one model share this table."""
        self.load_reverse: Callable[[], LoadedModel] | None = None
        """Loads the model of the other direction, where the folder holds one too."""

    def __repr__(self) -> str:
        return f"LoadedModel({type(self.module).__name__}, task={self.task!r}, device={str(self.device)!r})"

    @property
    def device(self) -> torch.device:
        return self.module.device

    # What the model can do

    @property
    def has_encoder_and_decoder(self) -> bool:
        return bool(self.module.config.is_encoder_decoder)

    @property
    def has_output(self) -> bool:
        """Return whether there is an output to explain."""
        return self.texts.has_output

    @property
    def generates(self) -> bool:
        """Return whether the output is given token by token, each with those before it as input."""
        return self.texts.generates

    @property
    def continues(self) -> bool:
        """Return whether the source and its output are one sequence."""
        return self.texts.continues

    @property
    def translates(self) -> bool:
        """Return whether the output is a text of its own, generated from the source."""
        return self.generates and not self.continues

    @property
    def fills_gaps(self) -> bool:
        """Return whether the output is a word for each gap in the text."""
        return self.texts.fills_gaps

    @property
    def classifies(self) -> bool:
        """Return whether the output is one label for the whole text."""
        return self.texts.classifies

    @property
    def labels(self) -> dict[int, str]:
        """The names of a classifier's labels, by their numbers; nothing in other models."""
        return dict(self.module.config.id2label) if self.classifies else {}

    def label_id(self, label: str) -> int:
        """Find a classifier's label by its name or number."""
        assert isinstance(self.texts, ClassificationTexts)
        return self.texts.label_id(label)

    # Directions

    @cached_property
    def other_way(self) -> LoadedModel | None:
        """The model for the other direction: the same one if it translates both ways, or the one in its folder."""
        if self.load_reverse is not None:
            other = self.load_reverse()
            other.other_way = self
            return other
        languages = languages_both_ways(self.tokenizer)
        if languages is None or not self.translates:
            return None
        prompt = other_direction(languages, self.prompt)
        other = LoadedModel(self.module, self.tokenizer, self.task, prompt, self.max_memory)
        other.adapters = self.adapters
        other.other_way = self
        return other

    def facing(self, source: Source, target: Text | None = None) -> LoadedModel:
        """Return the model for the direction of a text, or of a pair: itself, unless the other one is recognised."""
        if self.guess is None or self.other_way is None or isinstance(source, tuple):
            return self
        guess = self.guess
        language = guess.language_of(source) if target is None else guess.source_language_of(source, target)
        return self if language in (None, self.prompt.source_lang) else self.other_way

    @property
    def direction(self) -> str:
        """Name the direction in which the model translates, as `en-es`; where it has only one, `source-target`."""
        return f"{self.prompt.source_lang or 'source'}-{self.prompt.target_lang or 'target'}"

    @property
    def adapter(self) -> AlignmentAdapter | None:
        """The alignment adapter of this direction, if there is one."""
        return self.adapters.get(self.direction)

    # Texts

    def encode(self, source: Source, target: Text | None, *, name: str = "source") -> Example:
        """Make the example of a source and a target; the words of both are kept."""
        source_words, second_words = split_segments(source, name)
        target_words = None if target is None else split_words(target, name.replace("source", "target"))
        example = self._fitted(self.texts.encode(source_words, target_words, second_words))
        self._check_length(example, name)
        self._check_vocabulary(example)
        return example

    def with_output(self, example: Example, ids: Sequence[int]) -> Example:
        """Complete an example with the output ids that the model answered."""
        return self._fitted(self.texts.answered(example, tuple(ids)))

    def _fitted(self, example: Example) -> Example:
        """Leave the step out that would read the last output of all, where the model has no position for it."""
        if len(example.decoder_ids) <= self.max_length:
            return example
        return replace(example, decoder_ids=example.decoder_ids[: len(example.labels)])

    @cached_property
    def max_length(self) -> int:
        """Return how many positions the model takes."""
        return count_positions(self.module, self.tokenizer)

    def _check_length(self, example: Example, name: str) -> None:
        if len(example) > self.max_length:
            raise InputError(
                f"The {name} is too long: it and its target take {len(example)} positions, and this model takes "
                f"{self.max_length}. Split it."
            )

    def _check_vocabulary(self, example: Example) -> None:
        for side, ids in (("source", example.ids), ("prefix", example.decoder_ids)):
            known = getattr(self.embedding_sites[side].module, "num_embeddings", None) if ids else None
            if known is not None and max(ids) >= known:
                raise InputError(
                    f"The tokenizer gives the id {max(ids)}, and the model knows {known}: use its own tokenizer."
                )

    # Running

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Switch dropout off and parameters' gradients too, as long as the context lasts."""
        with evaluating(self.module):
            yield

    def batch(self, examples: Sequence[Example]) -> Batch:
        """Pad examples into one batch on the model's device."""
        if torch.get_num_threads() > 1:
            begin_threads("A model")
        if self.classifies and len(examples) > 1 and self.module.config.pad_token_id is None:
            raise InputError(
                f"{type(self.module).__name__} has no padding token, so it takes one text at a time: "
                "set model.config.pad_token_id."
            )
        return build_batch(examples, self.pad_id, self.device)

    @cached_property
    def pad_id(self) -> int:
        """Name the token that fills up a batch: the model's own, since some look for it; else any will do."""
        known = (self.module.config.get_text_config().pad_token_id, self.tokenizer.pad_token_id)
        return next((pad for pad in known if pad is not None and pad >= 0), 0)

    def inputs(self, batch: Batch) -> dict[str, Any]:
        """Return the arguments of the model's forward pass."""
        inputs: dict[str, Any] = self.source_inputs(batch)
        if batch.decoder_ids is not None:
            inputs["decoder_input_ids"] = batch.decoder_ids
        if self.generates:
            inputs["use_cache"] = False
        return inputs

    def source_inputs(self, batch: Batch) -> dict[str, Tensor]:
        """Return the arguments of the forward pass that are about the source."""
        inputs = {"input_ids": batch.ids, "attention_mask": batch.mask.long()}
        return inputs if batch.segments is None else inputs | {"token_type_ids": batch.segments}

    def run(self, batch: Batch) -> Any:
        """Run the model without its head where it can be left out: enough for what happens inside it."""
        body = self.module.base_model
        return (body if self.generates or self.fills_gaps else self.module)(**self.inputs(batch))

    def logits(self, batch: Batch) -> Float[Tensor, "batch target vocabulary"]:
        """Return the logits of every output from one teacher-forced pass."""
        if self.classifies:
            return self.module(**self.inputs(batch)).logits[:, None]
        return self.take_logits(batch, batch.rows, **self.inputs(batch))

    def take_logits(
        self, batch: Batch, rows: Int[Tensor, "batch target"], **inputs: Any
    ) -> Float[Tensor, "batch target vocabulary"]:
        """Run the model, and return the logits of some positions; where it can, it computes no others."""
        if "logits_to_keep" in inspect.signature(self.module.forward).parameters:
            asked = rows[batch.row_mask]
            first = int(asked.min())
            inputs["logits_to_keep"] = torch.arange(first, int(asked.max()) + 1, device=rows.device)
            rows = (rows - first).clamp(min=0)  # padding is at 0
        return take_rows(self.module(**inputs).logits, rows)

    def log_probs(self, batch: Batch) -> Float[Tensor, "batch target"]:
        """Return the log-probability of every output from one teacher-forced pass."""
        logits = self.logits(batch)
        precise = torch.promote_types(logits.dtype, torch.float32)  # half precision is too coarse for a log-softmax
        log_probs = logits.log_softmax(-1, dtype=precise)
        return log_probs.gather(-1, batch.outputs[..., None])[..., 0]

    @property
    def last_stack(self) -> nn.Module:
        """Return the stack of layers whose last states the outputs are read from."""
        return self.module.get_decoder() if self.has_encoder_and_decoder else self.module.base_model

    def run_encoder(self, batch: Batch) -> EncoderOutput:
        """Return the encoder's last states; where there is no decoder after it, those of the whole stack."""
        encoder = self.module.get_encoder() if self.has_encoder_and_decoder else self.last_stack
        output = encoder(**self.source_inputs(batch))
        more = getattr(self.last_stack, "takes_from_encoder", ())  # decoders of ours say what
        return EncoderOutput(output[0], {name: output[name] for name in more})

    def logits_after(self, batch: Batch, encoded: EncoderOutput) -> Tensor:
        """Return the logits of every decoder position, or of a classifier's label, given the encoder's last states."""
        output = ModelOutput(last_hidden_state=encoded.states, **encoded.beside)
        inputs = self.inputs(batch) | {"encoder_outputs": output}
        if self.classifies:  # which still asks its ids what can be attended
            return self.module(**inputs).logits[:, None]
        del inputs["input_ids"]
        return self.module(**inputs).logits

    def last_states(
        self, batch: Batch, encoded: EncoderOutput | None = None, length: int | None = None
    ) -> Float[Tensor, "batch position width"]:
        """Return the last stack's last states, over the first `length` positions; later ones cannot change them."""
        if encoded is not None:
            assert batch.decoder_ids is not None
            return self.last_stack(
                input_ids=batch.decoder_ids[:, :length],
                encoder_hidden_states=encoded.states,
                encoder_attention_mask=batch.mask.long(),
                use_cache=False,
                **encoded.beside,
            )[0]
        inputs = self.inputs(batch)
        inputs |= {name: tensor[:, :length] for name, tensor in self.source_inputs(batch).items()}
        return self.last_stack(**inputs)[0]

    def states_of_all_layers(self, batch: Batch) -> States:
        """Return the states of encoder and decoder, from the embeddings to the last layer.

        Of a model that keeps only its last states (our recurrent and convolutional ones do), the embeddings and those.
        """
        output = self.module.base_model(**self.inputs(batch), output_hidden_states=True)
        encoder, decoder = output.get("encoder_hidden_states"), output.get("decoder_hidden_states")
        if encoder is None or decoder is None:
            assert batch.decoder_ids is not None
            embedded = {
                side: self.embedding_sites[side].module(ids)
                for side, ids in (("source", batch.ids), ("prefix", batch.decoder_ids))
            }
            encoder = (embedded["source"], output.encoder_last_hidden_state)
            decoder = (embedded["prefix"], output.last_hidden_state)
        return States(tuple(encoder), tuple(decoder))

    # Embeddings

    @cached_property
    def embedding_sites(self) -> dict[str, EmbeddingSite]:
        """Return where the source is embedded and, in a decoder of its own, the target prefix."""
        if not self.has_encoder_and_decoder:
            return {"source": embedding_site(self.module)}
        return {
            "source": embedding_site(self.module.get_encoder()),
            "prefix": embedding_site(self.module.get_decoder()),
        }

    @torch.no_grad()
    def embedding_of(self, side: str, token: str | None) -> Float[Tensor, " width"]:
        """Return the (scaled) embedding of the tokenizer's pad, mask or unknown token; None gives zeros."""
        site = self.embedding_sites[side]
        attribute = {"pad": "pad_token_id", "mask": "mask_token_id", "unknown": "unk_token_id"}
        number = 0 if token is None else getattr(self.tokenizer, attribute[token], None)
        if number is None:
            raise InputError(f"This tokenizer has no {token} token: choose another replacement, such as zero.")
        vector = site.module(torch.tensor([number], device=self.device))[0] * site.scale
        return torch.zeros_like(vector) if token is None else vector

    @contextmanager
    def changed_embeddings(self, **changes: EmbeddingChange) -> Iterator[None]:
        """Change the (scaled) embeddings of the sides named (`source=`, `prefix=`) in every pass of the context."""
        encoder = self.module.get_encoder() if self.has_encoder_and_decoder else None
        with changed_embeddings(self.embedding_sites, encoder, **changes):
            yield

    # Attention

    @cached_property
    def attention_layers(self) -> list[AttentionLayer]:
        """List every attention layer; the first use checks that watching the model changes nothing."""
        probe = self.probe()
        inputs = self.inputs(probe)

        def run(module: nn.Module) -> Tensor:
            with _uncalibrated(module):
                output = module(**inputs)
            return output.logits if hasattr(output, "logits") else output.last_hidden_state

        with self.evaluating():
            target_length = None if probe.decoder_ids is None else probe.decoder_ids.shape[1]
            return find_attention(self.module, run, probe.ids.shape[1], target_length)

    def probe(self) -> Batch:
        """Make a small batch of two lengths that differ between source and target."""
        vocabulary = self.module.config.get_text_config().vocab_size
        ids = [(5 + 7 * i) % vocabulary for i in range(6)]
        decoder_ids = (0, *ids[:3]) if self.has_encoder_and_decoder else ()
        lengths = (6, 4)
        examples = [
            Example(tuple(ids[:length]), Tokens(("",) * length, (None,) * length), decoder_ids=decoder_ids)
            for length in lengths
        ]
        return self.batch(examples)

    def layers(self, kind: str) -> list[AttentionLayer]:
        """List the attention layers of a kind, from the first to the last."""
        found = [layer for layer in self.attention_layers if layer.kind == kind]
        if not found:
            has = [kind for kind in ATTENTION_KINDS if any(layer.kind == kind for layer in self.attention_layers)]
            raise InputError(f"{type(self.module).__name__} has no {kind} attention; it has {', '.join(has)}.")
        return found

    # Calibration

    @property
    def calibration(self) -> Calibration | None:
        """Return the calibration that the model's cross-attention has, if it has one."""
        return getattr(self.module, CALIBRATION, None)

    @contextmanager
    def uncalibrated(self) -> Iterator[None]:
        """Run a calibrated model with its original attention, as long as the context lasts."""
        with _uncalibrated(self.module):
            yield

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Save model and tokenizer, with calibration, language guess and adapters; `load(folder)` returns all of it."""
        with explained_errors(folder), writing_into(Path(folder), last="config.json") as staged:
            self.module.save_pretrained(staged)
            self.tokenizer.save_pretrained(staged)
            if self.calibration is not None:
                save_calibration(self.calibration, staged)
            if self.guess is not None:
                self.guess.save(staged)
            if self.adapters:
                save_adapters(self.adapters, staged)

    # Answers of the model's own

    @torch.no_grad()
    def answer(self, examples: Sequence[Example], **options: Any) -> list[tuple[int, ...]]:
        """Let the model give the output: generated ids, the predicted label, the words for the gaps.

        A translation's ids begin with the token that its decoder started with.
        """
        if not self.has_output:
            return [()] * len(examples)
        if self.generates:
            return self._generate(examples, options)
        batch = self.batch(examples)
        predicted = self.module(**self.inputs(batch)).logits.argmax(-1).tolist()
        if self.classifies:
            return [(label,) for label in predicted]
        texts = self.texts
        assert isinstance(texts, GapTexts)
        return [
            tuple(row[gap] for gap in texts.gaps(example)) for row, example in zip(predicted, examples, strict=True)
        ]

    def _generate(self, examples: Sequence[Example], options: dict[str, Any]) -> list[tuple[int, ...]]:
        one_sequence = self.continues
        batch = self.batch(examples)
        ids, mask = batch.ids, batch.mask
        if one_sequence:  # padded on the left, so that what is generated follows at once
            order = mask.long().argsort(dim=1, stable=True)
            ids, mask = ids.gather(1, order), mask.gather(1, order)
        width = ids.shape[1]
        # A multiple of each source's own length, so that an answer does not depend on what else is in the batch.
        limits = [2 * len(example.ids) + 20 for example in examples]
        is_limited = "max_new_tokens" in options or "max_length" in options
        if not is_limited:
            room = self.max_length - (width if one_sequence else 1)  # the decoder starts with a token of its own
            if room < 1:
                raise InputError(f"The source takes all {self.max_length} positions of this model: no answer fits in.")
            options = {"max_new_tokens": min(max(limits), room)} | options
        options = {"pad_token_id": self.pad_id} | forced_start(self.tokenizer, self.prompt.target_lang) | options
        sequences = self.module.generate(ids, attention_mask=mask.long(), **options).tolist()
        answers = [
            self._until_end(sequence[width if one_sequence else 1 :])[: None if is_limited else limit]
            for sequence, limit in zip(sequences, limits, strict=True)
        ]
        if one_sequence:
            return answers
        return [(sequence[0], *answer) for sequence, answer in zip(sequences, answers, strict=True)]

    def _until_end(self, ids: list[int]) -> tuple[int, ...]:
        """Cut the padding after the end token; a decoder-only model's end token is no output to explain."""
        ends = self.module.generation_config.eos_token_id
        ends = {ends} if isinstance(ends, int) else set(ends or ())
        for position, token in enumerate(ids):
            if token in ends:
                stop = position + self.translates
                return tuple(ids[: max(stop, 1)])
        while len(ids) > 1 and ids[-1] == self.pad_id:
            ids.pop()
        return tuple(ids)

    def text_of(self, ids: Sequence[int]) -> str:
        """Turn generated ids into text."""
        return decode(self.tokenizer, ids)


def _uncalibrated(module: nn.Module) -> AbstractContextManager[Any]:
    calibration = getattr(module, CALIBRATION, None)
    return nullcontext() if calibration is None else calibration.running("original")
