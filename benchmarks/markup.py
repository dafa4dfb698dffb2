"""Markup carried over to a translation: how many of the package's 151 sentences come out as written down beforehand.

`python benchmarks/markup.py [MODEL[:METHOD] ...] [--wrong]` prints a Markdown table by kind of sentence: by each
model's word alignment (by `auto`, if no method is named), and by position, where each tag goes to the place that is as
far along the sentence as it was in the source. The rules were developed on every other sentence, from the first on, and
the rest was held out: the columns keep them apart. With `--wrong`, it shows what came out otherwise among the former.
"""

from __future__ import annotations

import sys
from collections import Counter

import sightline
from sightline.alignment.links import Alignment
from sightline.alignment.markup import parse_against
from sightline.alignment.restoring import restore_markup
from sightline.data.marked_up import MarkedUp, read_marked_up
from sightline.models.box import BOX_MODEL

HALVES = {"developed on": range(0, len(read_marked_up()), 2), "held out": range(1, len(read_marked_up()), 2)}


def by_position(sentence: MarkedUp) -> str:
    """Align every word with the one as far along the other sentence."""
    markup, words = parse_against(sentence.source, sentence.target), sentence.target.split()
    count = len(markup.words)
    links = {(min(int((j + 0.5) * count / len(words)), count - 1), j) for j in range(len(words))}
    links |= {(i, min(int((i + 0.5) * len(words) / count), len(words) - 1)) for i in range(count)}
    return restore_markup(markup, words, Alignment(links, (), count, len(words)))


def main() -> None:
    names = [name for name in sys.argv[1:] if name != "--wrong"] or [BOX_MODEL]
    sentences = read_marked_up()
    ways = {name: by_alignment(name, sentences) for name in names}
    ways["by position"] = [by_position(sentence) for sentence in sentences]
    right = {
        way: [result == " ".join(s.expected.split()) for result, s in zip(results, sentences, strict=True)]
        for way, results in ways.items()
    }
    columns = [f"{way}, {half}" for way in ways for half in HALVES]
    print("| kind | sentences | " + " | ".join(columns) + " |\n|---|---|" + "---|" * len(columns))
    for kind, _ in [*Counter(sentence.kind for sentence in sentences).most_common(), ("all", 0)]:
        chosen = [[n for n in half if kind in (sentences[n].kind, "all")] for half in HALVES.values()]
        counts = [str(sum(right[way][n] for n in half)) for way in ways for half in chosen]
        print(f"| {kind} | {len(chosen[0])} + {len(chosen[1])} | " + " | ".join(counts) + " |")
    if "--wrong" in sys.argv:
        for number in HALVES["developed on"]:
            for name in names:
                if not right[name][number]:
                    sentence = sentences[number]
                    print(
                        f"{sentence.kind}, {name}\n  {sentence.source}\n  {ways[name][number]}\n  {sentence.expected}"
                    )


def by_alignment(name: str, sentences: list[MarkedUp]) -> list[str]:
    """Put markup onto the translations as users do, with a model and perhaps a method, such as `en-es:norms`."""
    model, _, method = name.partition(":")
    sources, targets = [s.source for s in sentences], [s.target for s in sentences]
    options = {"method": method} if method else {}
    return sightline.transfer_markup(sightline.load(model), sources, targets, progress=False, **options)


if __name__ == "__main__":
    main()
