"""Heat maps and links in the terminal, in colour or, where there is none, in shades that plain text can hold."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.table import Table
from rich.text import Text

from sightline.view.colours import NEGATIVE_TEXT, POSITIVE_TEXT, terminal_colour
from sightline.view.labels import Label, clip, clusters
from sightline.view.picture import Picture, read_picture, write_number

TOKEN_LIMIT = 200  # tokens a side: more would only scroll past
LABEL_CELLS = 16
HEADER_LINES = 12
CELL_WIDTH = 2  # two terminal cells are about a square
SHADES = ((0.75, "█"), (0.5, "▓"), (0.25, "▒"), (0.05, "░"))
SHADE_KEY = "░ from 5 %  ▒ 25 %  ▓ 50 %  █ 75 %"
SPECIAL_MARK = "*"


@dataclass(frozen=True)
class HeatMap:
    """A matrix of target rows and source columns that wraps into blocks of columns where the console is narrow."""

    picture: Picture

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        picture = self.picture
        in_colour = not console.no_color and console.color_system in ("256", "truecolor")
        row_labels = [_row_label(label) for label in picture.rows]
        label_width = max((label.cell_len for label in row_labels), default=0)
        room = options.max_width - label_width - 3  # the space after the label, the boundary, one to spare
        blocks = list(_blocks(len(picture.columns), max(room // CELL_WIDTH, 1)))
        yield _title(picture)
        for columns in blocks:
            yield Text()
            if len(blocks) > 1:
                yield Text(f"columns {columns.start + 1} to {columns.stop} of {len(picture.columns)}", "dim")
            for line in _header(picture, columns):
                yield _line(Text(" " * (label_width + 1)) + line)
            for row, label in enumerate(row_labels):
                margin = Text(" " * (label_width - label.cell_len))
                yield _line(margin + label + Text(" ") + _cells(picture, row, columns, in_colour))
        yield Text()
        for sentence in _key(picture, in_colour):
            yield Text(sentence, "dim")


def heat_map(attribution: Mapping[str, Any], at: Mapping[str, int] | None = None) -> HeatMap:
    """Draw one matrix of an attribution's dictionary; leading axes that `at` does not name are averaged."""
    return HeatMap(read_picture(attribution, at, row_limit=TOKEN_LIMIT, column_limit=TOKEN_LIMIT))


def links(attribution: Mapping[str, Any], top: int = 1, at: Mapping[str, int] | None = None) -> Group:
    """List every target token with the `top` source tokens of largest score: the score, and its share of the row.

    Where they are known, the probability of the target token stands before it.
    """
    picture = read_picture(attribution, at, row_limit=TOKEN_LIMIT)
    table = Table.grid(padding=(0, 1))
    if picture.probabilities:
        table.add_column(justify="right", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    shares = picture.shares
    for row, label in enumerate(picture.rows):
        cells = [_row_label(label), Text("←", "dim")]
        if picture.probabilities:
            cells.insert(0, Text(f"p {picture.probabilities[row]:.2f}", "dim"))
        for column in picture.strongest(row, top):
            share = float(shares[row, column])
            source = _label_text(picture.columns[column], 2 * LABEL_CELLS)
            source.stylize(_link_style(share))
            score = write_number(float(picture.scores[row, column]))
            cells += [source, Text(score, "dim"), Text(f"{abs(share):.0%}", "dim")]
        table.add_row(*cells)
    return Group(table, *(Text(note, "dim") for note in picture.notes))


def show(attribution: Mapping[str, Any], console: Console | None = None) -> None:
    """Print the heat map and the strongest link of every target token, or three where there is only one token."""
    console = console or Console()
    top = 3 if len(attribution["target"]["tokens"]) == 1 else 1
    console.print(heat_map(attribution))
    console.print()
    console.print(links(attribution, top))


def _blocks(count: int, size: int) -> Iterator[range]:
    for start in range(0, count, size):
        yield range(start, min(start + size, count))


def _title(picture: Picture) -> Text:
    title = Text(picture.method, "bold")
    settings = " ".join(f"{name}={value}" for name, value in picture.settings)
    for part in (settings, picture.selection):
        if part:
            title.append(f" · {part}", "not bold dim")
    return title


def _label_text(label: Label, cells: int) -> Text:
    if label.special:
        return Text(SPECIAL_MARK + clip(label.text, cells - 1), "italic dim")
    return Text(clip(label.text, cells))


def _row_label(label: Label) -> Text:
    return _label_text(label, LABEL_CELLS)


def _header(picture: Picture, columns: range) -> list[Text]:
    """Write the labels of columns from top to bottom, one character a line, standing on the matrix."""
    stacks = [_stack(picture.columns[column]) for column in columns]
    height = max(map(len, stacks), default=0)
    lines = []
    for level in range(height, 0, -1):
        line = Text()
        for column, stack in zip(columns, stacks, strict=True):
            line.append(_boundary(picture, column), "dim")
            character = stack[-level] if level <= len(stack) else ""
            style = "italic dim" if picture.columns[column].special else ""
            line.append(character + " " * (CELL_WIDTH - cell_len(character)), style)
        lines.append(line)
    return lines


def _stack(label: Label) -> Sequence[str]:
    characters = clusters(label.text)
    if len(characters) > HEADER_LINES:
        characters = [*characters[: HEADER_LINES - 1], "⋮"]
    return [SPECIAL_MARK, *characters] if label.special else characters


def _boundary(picture: Picture, column: int) -> str:
    return "│" if column == picture.boundary and picture.has_prefix and picture.boundary > 0 else ""


def _cells(picture: Picture, row: int, columns: range, in_colour: bool) -> Text:
    line = Text()
    strengths = picture.strengths[row]
    for column in columns:
        line.append(_boundary(picture, column), "dim")
        strength = float(strengths[column])
        if in_colour:
            line.append(" " * CELL_WIDTH, f"on {terminal_colour(strength)}")
        else:
            shade = _shade(abs(strength))
            line.append(shade + ("-" if strength < 0 and shade.strip() else shade))
    return line


def _shade(amount: float) -> str:
    return next((shade for least, shade in SHADES if amount >= least), " ")


def _link_style(share: float) -> str:
    weight = "bold " if abs(share) >= 0.5 else "dim " if abs(share) < 0.25 else ""
    return weight + (NEGATIVE_TEXT if share < 0 else POSITIVE_TEXT)


def _line(text: Text) -> Text:
    text.no_wrap = True
    text.overflow = "crop"
    return text


def _key(picture: Picture, in_colour: bool) -> Iterator[str]:
    scale = "the brighter, the nearer to" if in_colour else f"{SHADE_KEY} of"
    yield f"{scale} the largest score of the row"
    if picture.signed:
        yield "orange: negative" if in_colour else "-: negative"
    if any(label.special for label in (*picture.rows, *picture.columns)):
        yield f"{SPECIAL_MARK} special position"
    if picture.has_prefix:
        yield "columns after │ are the target prefix"
    yield from picture.notes
