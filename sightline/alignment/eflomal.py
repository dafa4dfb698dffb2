"""eflomal (Östling and Tiedemann 2016), through its own package: an HMM with fertilities, by Gibbs sampling.

It trains on the pairs that it aligns, all at once, in both directions; it gives no confidences.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from sightline.alignment.bitext import Words
from sightline.alignment.formats import read_alignments, read_lengths
from sightline.alignment.links import Alignment
from sightline.errors import InputError


def align_with_eflomal(pairs: Iterable[tuple[Words, Words]]) -> Iterator[tuple[Alignment, Alignment]]:
    """Align a corpus; yield, for each pair, the forward and the reverse alignment, both as (source, target) links."""
    try:
        import eflomal
    except ImportError:
        raise InputError("The aligner eflomal is not installed: pip install eflomal.") from None
    with TemporaryDirectory(prefix="sightline-eflomal-") as folder:
        texts = Path(folder, "source"), Path(folder, "target")
        with texts[0].open("w", encoding="utf-8") as sources, texts[1].open("w", encoding="utf-8") as targets:
            for source, target in pairs:
                sources.write(" ".join(source) + "\n")
                targets.write(" ".join(target) + "\n")
        links = Path(folder, "forward"), Path(folder, "reverse")
        with texts[0].open(encoding="utf-8") as sources, texts[1].open(encoding="utf-8") as targets:
            eflomal.Aligner().align(
                sources, targets, links_filename_fwd=str(links[0]), links_filename_rev=str(links[1])
            )
        forward, reverse = (read_alignments(path, lengths=read_lengths(*texts)) for path in links)
        yield from zip(forward, reverse, strict=True)
