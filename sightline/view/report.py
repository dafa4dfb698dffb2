"""The report of a study, from the plain dictionary that `study.json` holds: a self-contained page, and Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from sightline.view.plots import draw_plot
from sightline.view.tables import draw_cells

Document = Mapping[str, Any]
CLAIMS_HEADER = ("claim", "verdict", "here", "paper")
CHARTS = ("lines", "points", "bars")
"""The kinds of plot that have the same width; heat maps are as wide as their tables."""
VERDICT_CLASSES = {"holds": "holds", "does not hold": "fails", "not measured": "faint"}


def render_report_page(document: Document) -> str:
    """Draw the report as a page that needs no network and no script."""
    parts = [
        f"<p class='lead'>{escape(document['paper'])}</p>",
        f"<p>{_code(_how(document))}</p>",
        "<h2>Claims</h2>",
        f"<div class='claims'>{draw_cells(CLAIMS_HEADER, _claim_rows(document), VERDICT_CLASSES)}</div>",
        f"<div class='figures'>{''.join(map(_figure_element, document['plots']))}</div>",
    ]
    for table in document["tables"]:
        parts.append(f"<h2>{escape(_title(table))}</h2><p class='faint'>{LEGEND}</p>")
        parts.append(draw_cells(("", *table["columns"]), _figure_rows(table)))
    if document["deviations"]:
        items = "".join(f"<li>{_code(text)}</li>" for text in document["deviations"])
        parts.append(f"<h2>Done otherwise than in the paper</h2><ul>{items}</ul>")
    parts.append(f"<h2>Settings and versions</h2>{draw_cells(('name', 'value'), _conditions(document))}")
    return _page(document["title"], parts)


def _figure_element(plot: Mapping[str, Any]) -> str:
    note = f"<figcaption>{_code(plot['note'])}</figcaption>" if plot.get("note") else ""
    kind = " class='chart'" if plot["kind"] in CHARTS else ""
    return f"<figure{kind}>{draw_plot(plot)}{note}</figure>"


def _code(text: str) -> str:
    """Write text as HTML; what stands between backticks is code."""
    return "".join(
        f"<code>{escape(part)}</code>" if number % 2 else escape(part) for number, part in enumerate(text.split("`"))
    )


def render_report_markdown(document: Document) -> str:
    """Write the report as Markdown, without its plots."""
    parts = [
        f"# {document['title']}",
        document["paper"],
        _how(document),
        "## Claims",
        _markdown_table(CLAIMS_HEADER, _claim_rows(document)),
    ]
    for table in document["tables"]:
        parts += [f"## {_title(table)}", LEGEND, _markdown_table(("", *table["columns"]), _figure_rows(table))]
    if document["deviations"]:
        parts += ["## Done otherwise than in the paper", "\n".join(f"- {text}" for text in document["deviations"])]
    parts += ["## Settings and versions", _markdown_table(("name", "value"), _conditions(document))]
    return "\n\n".join(parts) + "\n"


INDEX_TITLE = "Papers measured anew"
INDEX_HEADER = ("study", "paper", "claims that hold", "not measured", "preset")


def render_index_page(documents: Sequence[Document]) -> str:
    """Draw an index of reports, which lie in folders named like their studies."""
    rows = (
        (f"<a href='{escape(name)}/study.html'>{escape(title)}</a>", *map(escape, others))
        for name, title, *others in _index_rows(documents)
    )
    head = "".join(f"<th>{escape(name)}</th>" for name in INDEX_HEADER)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    table = f"<div class='scroll'><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    lead = "<p class='lead'>What each paper claims, measured here, with the paper's own figures beside ours.</p>"
    return _page(INDEX_TITLE, [lead, table])


def render_index_markdown(documents: Sequence[Document]) -> str:
    """Write the index as Markdown."""
    rows = ((f"[{title}]({name}/study.md)", *others) for name, title, *others in _index_rows(documents))
    return f"# {INDEX_TITLE}\n\n{_markdown_table(INDEX_HEADER, rows)}\n"


def _index_rows(documents: Sequence[Document]) -> Iterator[tuple[str, ...]]:
    for document in documents:
        verdicts = [claim["verdict"] for claim in document["claims"]]
        held, open_ones = verdicts.count("holds"), verdicts.count("not measured")
        counts = f"{held} of {len(verdicts) - open_ones}", str(open_ones)
        yield document["study"], document["title"], document["paper"], *counts, document["preset"]


def _page(title: str, parts: Sequence[str]) -> str:
    template = Template((files("sightline.view") / "report.html").read_text(encoding="utf-8"))
    return template.substitute(title=escape(title), body="\n".join(parts))


LEGEND = "Our figure (± standard deviation), then the paper's in brackets."


def _how(document: Document) -> str:
    minutes = sum(document["seconds"].values()) / 60
    took = f"{minutes:.0f} minutes" if minutes >= 2 else f"{minutes * 60:.0f} seconds"
    text = "on real data" if document["real data"] else "without real corpora"
    command = f"sightline study {document['study']} --preset {document['preset']}"
    return f"Measured with `{command}` {text}, in {took}."


def _claim_rows(document: Document) -> Iterator[tuple[str, ...]]:
    for claim in document["claims"]:
        yield f"{claim['id']}: {claim['text']}", claim["verdict"], claim["ours"] or "-", claim["paper"]


def _figure_rows(table: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for row in table["rows"]:
        cells = (_cell(table["ours"][row].get(name), table["paper"][row].get(name)) for name in table["columns"])
        yield (row, *cells)


def _cell(ours: Any, paper: Any) -> str:
    published = f"[{_figure(paper)}]" if paper is not None else ""
    return " ".join(filter(None, (_figure(ours), published))) or "-"


def _figure(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "-" if value[0] is None else " ± ".join(_number(one) for one in value)
    return _number(value) if isinstance(value, int | float) else str(value)


def _number(value: float | int) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.2f}"


def _title(table: Mapping[str, Any]) -> str:
    return f"{table['title']} ({table['where']})"


def _conditions(document: Document) -> Iterator[tuple[str, str]]:
    yield from _settings(document["settings"])
    yield "versions", ", ".join(f"{name} {number}" for name, number in document["versions"].items())
    yield "commit", str(document["commit"])
    yield "seconds by step", ", ".join(f"{name} {seconds:.0f}" for name, seconds in document["seconds"].items())


def _settings(settings: Mapping[str, Any], group: str = "") -> Iterator[tuple[str, str]]:
    """Yield names and values; those of a group bear its name in front."""
    for name, value in settings.items():
        if isinstance(value, Mapping) and value:
            yield from _settings(value, f"{group}{name}.")
            continue
        text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        yield f"{group}{name}", text if value not in (None, "", [], {}) else "-"


def _markdown_table(header: Sequence[str], rows: Iterator[tuple[str, ...]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)
