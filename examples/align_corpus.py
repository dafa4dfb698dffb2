"""Align two files line by line, and write the words that belong together.

    python examples/align_corpus.py text.en text.es words.txt [MODEL]

Sentences are read, aligned and written as a stream, so that the corpus may be of any size. The model is by default the
one in the box; for other languages give a folder or a name on the Hugging Face hub. Word pairs come with how often they
were linked: a first draft of a dictionary.
"""

import sys
from collections import Counter
from itertools import tee

import sightline
from sightline.files import read_lines

source_file, target_file, output, *model = sys.argv[1:]
sources, same_sources = tee(read_lines(source_file))
targets, same_targets = tee(read_lines(target_file))
counts: Counter[tuple[str, str]] = Counter()
for source, target, links in zip(
    same_sources, same_targets, sightline.align(sightline.load(*model), sources, targets), strict=True
):
    source_words, target_words = source.split(), target.split()
    counts.update((source_words[i], target_words[j]) for i, j in links)
with open(output, "w", encoding="utf-8") as file:
    for (one, other), count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        file.write(f"{count}\t{one}\t{other}\n")
print(f"{output}: {len(counts):,} pairs of words, the most frequent {counts.most_common(1)[0][0]}")
