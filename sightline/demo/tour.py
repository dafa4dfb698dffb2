"""The tour: a heat map, translations with their links, methods compared on gold alignments, tags, and a report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sightline.attribution import Attribution
from sightline.demo.comparison import Compared, compare_methods
from sightline.demo.made_up import train_on_made_up_language
from sightline.demo.material import GoldSet, Material, Sentence, material_in_the_box
from sightline.files import check_folder_writable, check_writable, write_text
from sightline.models.box import has_box_model
from sightline.models.loaded import LoadedModel
from sightline.scores import Score
from sightline.verbs.aligning import explain_choice
from sightline.verbs.explaining import explain
from sightline.verbs.translating import Translation, translate, translate_markup
from sightline.view.html import render_page
from sightline.view.tables import PageTable

REPORT = "report.html"
MODEL = "model"
SEARCH = {"num_beams": 4, "min_new_tokens": 2}  # a word at least, even of a model that has seen little


@dataclass(frozen=True)
class Extent:
    """How much is shown: sentences, gold pairs of each set, SmoothGrad samples, seconds of training if there is any."""

    sentences: int = 18
    gold_pairs: int = 66
    smoothgrad: int = 4  # Ding et al. (2019) take 30, which would take minutes here
    seconds: float = 60.0


QUICK = Extent(sentences=2, gold_pairs=6, smoothgrad=2, seconds=5.0)


def demonstrate(
    output: str | Path, *, quick: bool = False, generated: bool = False, console: Console | None = None
) -> Path:
    """Show what Sightline does, with the model in the box, and write a report into a folder; give the report's path.

    With `generated`, or where the package lacks its model, a small one is trained on a made-up language first, and
    saved into the folder too. `quick` shows a little of everything, in seconds.
    """
    console = console or Console()
    folder = _make_folder(Path(output))
    extent = QUICK if quick else Extent()

    def say(text: str) -> None:
        console.print(text, highlight=False, markup=False, soft_wrap=True)

    if not generated and not has_box_model():
        generated = True
        say("This installation lacks the model in the box, so that a small one is trained on a made-up language first.")
    if generated:
        material = train_on_made_up_language(extent.seconds, say)
        material.model.save(folder / MODEL)
    else:
        material = material_in_the_box()
    report = folder / REPORT
    write_text(report, _show(_shortened(material, extent), extent, console, say))
    say(f"\nThe report, with pictures to click on: {report}")
    if generated:
        say(f"The model, to go on with: sightline.load({str(folder / MODEL)!r})")
    return report


def _show(material: Material, extent: Extent, console: Console, say: Callable[[str], None]) -> str:
    """Show everything in the terminal, a picture first; return the page that shows it too."""
    model = material.model
    console.rule(material.title)
    texts = [sentence.text for sentence in material.sentences]
    why = _explain(model, texts[:1], _translate(model, texts[:1]))[0]
    _show_picture(why, material.sentences[0], console, say)

    console.rule("Translations, and which word came from which")
    translations = _translate(model, texts)
    linked = [_write_links(text, one) for text, one in zip(texts, translations, strict=True)]
    for sentence, translation, links in zip(material.sentences, translations, linked, strict=True):
        lines = (sentence.shows, f"  {sentence.text}", f"  {translation.text}", f"  {links}")
        say("\n" + "\n".join(filter(None, lines)))
    whys = _explain(model, texts, translations)

    console.rule("Methods compared on gold alignments: alignment error rate")
    compared = list(compare_methods(model, material.gold, extent.smoothgrad))
    console.print(_comparison_table(compared, material.gold))

    console.rule("Markup carried over by the alignment")
    marked_up = translate_markup(model, material.marked_up, **SEARCH)
    say(f"{material.marked_up}\n{marked_up}")

    tables = [
        PageTable(
            "Translations and their word links",
            ("shows", "source", "translation", "links"),
            [
                (sentence.shows, sentence.text, translation.text, links)
                for sentence, translation, links in zip(material.sentences, translations, linked, strict=True)
            ],
        ),
        PageTable(
            "Methods compared on gold alignments: alignment error rate, with 95 % intervals",
            ("method", "read by", *(_column(one) for one in material.gold)),
            [(one.method, one.way, *_cells(one)) for one in compared],
            "; ".join(map(_signature, compared[0].error_rates.items())),
        ),
        PageTable("Markup carried over", ("source", "translation"), [(material.marked_up, marked_up)]),
    ]
    pictures = [
        why.to_dict() | {"heading": sentence.shows} for why, sentence in zip(whys, material.sentences, strict=True)
    ]
    return render_page(pictures, f"Sightline: {material.title}", tables)


def _translate(model: LoadedModel, texts: Sequence[str]) -> list[Translation]:
    return translate(model, list(texts), align=True, progress=False, **SEARCH)


def _explain(model: LoadedModel, texts: Sequence[str], translations: Sequence[Translation]) -> list[Attribution]:
    """Explain translations as alignments are read off the model: attention or norms, by the layer chosen."""
    targets = [translation.text for translation in translations]
    readout = explain_choice(model, list(texts), targets, use_adapter=False).forward
    whys = explain(model, list(texts), targets, method=readout.method, progress=False, **readout.settings)
    return [why.words().without_special() for why in whys]


def _show_picture(why: Attribution, sentence: Sentence, console: Console, say: Callable[[str], None]) -> None:
    """Draw where the model looked for each word of a translation."""
    if sentence.shows:
        say(f"\n{sentence.shows}")
    say(f"{sentence.text}\n{' '.join(why.target.words)}\n")
    say("Where the model looked (columns) for each word that it wrote (rows):\n")
    why.show(console)


def _write_links(source: str, translation: Translation) -> str:
    assert translation.alignment is not None
    words, targets = source.split(), translation.words
    return "  ".join(f"{words[i]}–{targets[j]}" for i, j in sorted(translation.alignment, key=lambda link: link[1]))


def _comparison_table(compared: Sequence[Compared], gold: Sequence[GoldSet]) -> Table:
    table = Table("method", "read by", *(_column(one) for one in gold), box=None, header_style="bold")
    for one in compared:
        table.add_row(*map(Text, (one.method, one.way, *_cells(one))))
    return table


def _column(gold: GoldSet) -> str:
    return f"{gold.name}, {len(gold.sources)} pairs"


def _cells(one: Compared) -> list[str]:
    cells = []
    for score in one.error_rates.values():
        low, high = score.interval or (score.value, score.value)
        cells.append(f"{score.value:.1f} [{low:.1f}, {high:.1f}]")
    return cells


def _signature(rate: tuple[str, Score]) -> str:
    """Describe what an error rate was measured on; the number of links is each method's own."""
    name, score = rate
    about = [f"{key}:{value}" for key, value in score.settings.items() if key != "links"]
    return f"{name} {'|'.join(about)}"


def _shortened(material: Material, extent: Extent) -> Material:
    few = slice(extent.gold_pairs)
    gold = tuple(GoldSet(one.name, one.sources[few], one.targets[few], one.alignments[few]) for one in material.gold)
    sentences = material.sentences[: extent.sentences]
    return Material(material.title, material.model, sentences, material.marked_up, gold)


def _make_folder(folder: Path) -> Path:
    check_folder_writable(folder)
    folder.mkdir(parents=True, exist_ok=True)
    check_writable(folder / REPORT)
    return folder
