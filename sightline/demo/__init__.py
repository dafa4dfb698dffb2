"""The demonstration: what Sightline does, on sentences of ours, in a minute and without any download.

`material` is what is shown (a model, sentences, gold alignments), `made_up` trains a model where the package has none,
`comparison` measures methods on the gold alignments, and `tour` shows it all.
"""
