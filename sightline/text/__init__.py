"""Words and pieces, batches by length, and the recognition of languages."""
