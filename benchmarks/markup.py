"""Markup carried over to a translation: how many of the package's 151 sentences come out as written down beforehand.

`python benchmarks/markup.py [MODEL] [--wrong]` prints a Markdown table by kind of sentence: by the model's word
alignment, and by position, where each tag goes to the place that is as far along the sentence as it was in the source.
With `--wrong`, it shows what came out otherwise.
"""

from __future__ import annotations

import sys
from collections import Counter

import sightline
from sightline.alignment.links import Alignment
from sightline.alignment.markup import find_placeholders, parse_markup, restore_markup
from sightline.data.marked_up import MarkedUp, read_marked_up
from sightline.models.box import BOX_MODEL


def by_position(sentence: MarkedUp) -> str:
    """Align every word with the one as far along the other sentence."""
    kept = frozenset(find_placeholders(sentence.source)) & frozenset(find_placeholders(sentence.target))
    markup, words = parse_markup(sentence.source, kept), sentence.target.split()
    count = len(markup.words)
    links = {(min(int((j + 0.5) * count / len(words)), count - 1), j) for j in range(len(words))}
    links |= {(i, min(int((i + 0.5) * len(words) / count), len(words) - 1)) for i in range(count)}
    return restore_markup(markup, words, Alignment(links, (), count, len(words)))


def main() -> None:
    names = [name for name in sys.argv[1:] if name != "--wrong"]
    model = sightline.load(names[0] if names else BOX_MODEL)
    sentences = read_marked_up()
    found = sightline.transfer_markup(
        model, [s.source for s in sentences], [s.target for s in sentences], progress=False
    )
    ways = {"by alignment": found, "by position": [by_position(sentence) for sentence in sentences]}
    kinds = Counter(sentence.kind for sentence in sentences)
    print("| kind | sentences | " + " | ".join(ways) + " |\n|---|---|" + "---|" * len(ways))
    for kind, count in [*kinds.most_common(), ("all", len(sentences))]:
        right = [
            sum(
                result == " ".join(sentence.expected.split())
                for result, sentence in zip(results, sentences, strict=True)
                if kind in (sentence.kind, "all")
            )
            for results in ways.values()
        ]
        print(f"| {kind} | {count} | " + " | ".join(map(str, right)) + " |")
    if "--wrong" in sys.argv:
        for result, sentence in zip(found, sentences, strict=True):
            if result != " ".join(sentence.expected.split()):
                print(f"{sentence.kind}\n  {sentence.source}\n  {result}\n  {sentence.expected}")


if __name__ == "__main__":
    main()
