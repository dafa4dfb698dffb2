"""How much is read at most: what goes beyond is refused in one sentence, before it takes time or memory."""

MOST_WORDS = 10_000
"""Words of a sentence, and of any text that a model reads."""
