"""Text to train and measure on: generated languages and tasks, gold alignments, readers of corpora."""
