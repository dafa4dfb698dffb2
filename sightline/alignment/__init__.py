"""Word alignment, without torch.

- `links`: the value, Alignment; `formats` and `parallel`: files of alignments and of parallel text;
- `extraction`: from an Attribution to an Alignment; `symmetrization`: two directions to one;
- `error_rate`: scores against a gold standard;
- `columns`: the links of many pairs; `rendering`: their lines;
- `statistical`: aligners of both directions, kept in files by `saved`; `one_way`: what those of one direction share;
  `position_model`: IBM Model 1 and the diagonal model, on `bitext`, `lexicon`, `expectation`, `diagonal`;
  `hmm`: the hidden Markov model, by `forward_backward`, trained by `agreement`; `eflomal`;
  `files`: parallel text aligned by one of them;
- `markup`: tags and placeholders carried over to a translation.
"""
