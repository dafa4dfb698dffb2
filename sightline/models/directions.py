"""The direction in which a model translates: tokens for the target language, and models that translate both ways.

Our training gives the tokenizer of a model that translates both ways one special token for each language, `>>en<<` and
`>>es<<`; by these it is known again. OPUS-MT's models of many languages have such tokens too, but as plain pieces, and
go one way only.
"""

from __future__ import annotations

import re
from typing import Any

from sightline.errors import InputError
from sightline.models.tasks import Prompt

LANGUAGE_TOKEN = re.compile(r">>(\w+)<<\s*")

Languages = tuple[str, str]


def language_token(language: str) -> str:
    """Return the token that begins a source and names the language to translate into."""
    return f">>{language}<<"


def languages_both_ways(tokenizer: Any) -> Languages | None:
    """Name the two languages of a model that translates both ways; None for other models."""
    tokens = getattr(tokenizer, "extra_special_tokens", None) or ()
    found = [match[1] for match in map(LANGUAGE_TOKEN.fullmatch, map(str, tokens)) if match]
    return (found[0], found[1]) if len(found) == 2 else None


def names_direction(source_lang: str | None, target_lang: str | None, prefix: str) -> bool:
    """Return whether a user fixed the direction: by a language, or by a prefix that begins with one's token."""
    return source_lang is not None or target_lang is not None or LANGUAGE_TOKEN.match(prefix) is not None


def choose_direction(languages: Languages, source_lang: str | None, target_lang: str | None, prefix: str) -> Prompt:
    """Return what is put before a source; where no language is named, the first is translated into the second.

    The prefix, too, may begin with the token of the target language.
    """
    written = LANGUAGE_TOKEN.match(prefix)
    if written is not None and target_lang is None:
        target_lang = written[1]
    for language in (source_lang, target_lang):
        if language is not None and language not in languages:
            raise InputError(
                f"This model translates between {languages[0]} and {languages[1]}; it does not know {language!r}."
            )
    if target_lang is None:
        target_lang = languages[1] if source_lang is None else _other(languages, source_lang)
    if target_lang == source_lang:
        raise InputError(f"The source and the target cannot both be {target_lang}: this model translates.")
    rest = prefix[written.end() :] if written is not None else prefix
    return Prompt(_other(languages, target_lang), target_lang, f"{language_token(target_lang)} {rest}")


def other_direction(languages: Languages, prompt: Prompt) -> Prompt:
    """Exchange source and target."""
    assert prompt.source_lang is not None
    return choose_direction(languages, None, prompt.source_lang, prompt.prefix)


def _other(languages: Languages, language: str) -> str:
    return languages[1] if language == languages[0] else languages[0]


def forced_start(tokenizer: Any, language: str | None) -> dict[str, int]:
    """Name the target language's token where the decoder starts with one (M2M100, NLLB, mBART), as an option."""
    if language is None or not hasattr(tokenizer, "tgt_lang"):
        return {}
    name = tokenizer.get_lang_token(language) if hasattr(tokenizer, "get_lang_token") else language
    # The first mBART starts its decoder with the language; its successors force it after a start token.
    first_mbart = type(tokenizer).__name__ == "MBartTokenizer"
    option = "decoder_start_token_id" if first_mbart else "forced_bos_token_id"
    return {option: tokenizer.convert_tokens_to_ids(name)}
