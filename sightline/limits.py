"""How much is read at most: what goes beyond is refused in one sentence, before it takes time or memory."""

MOST_WORDS = 10_000
"""Words of a sentence, and of any text that a model reads; no link has a higher number."""
MOST_LINE_BYTES = 10_000_000
"""Bytes of a line, in any file that is read line by line."""
MOST_SENTENCES_SKIPPED = 10_000
"""Sentences without links, one after the other, in a file that names the sentence of each link."""
MOST_BEAMS = 256
"""Hypotheses kept at a time while translating."""
MOST_POINTS = 1_000
"""Points at which a gradient is averaged: noisy samples, or steps on the way from a baseline."""
MOST_YAML_NODES = 10_000
"""Values of a recipe, each counted as often as an alias repeats it."""
DEEPEST_YAML = 50
"""How deeply a recipe may be nested."""
LARGEST_SEED = 2**32 - 1
LARGEST_COUNT = 10**12
"""What a number of steps, layers, sentences or the like may be."""
