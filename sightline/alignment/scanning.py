"""Finding markup in text, in time that grows with the text's length alone, however broken the markup is.

Markup is tags (`<b>`, `</été>`, `<br/>`), comments, CDATA sections, processing instructions, `<!DOCTYPE ...>`,
entities (`&amp;`, `&#160;`), and placeholders (`{0}`, `${name}`, `{{name}}`, `%s`, `%1$d`, `%(name)s`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

NAME = r"[^\W\d][^\s<>/]*"
START = re.compile(
    rf"""(?P<fixed><!--|<!\[CDATA\[|<\?)
      | (?P<doctype><!(?i:DOCTYPE)(?=[\s>]))
      | (?P<tag></?{NAME})
      | &(?:[A-Za-z][A-Za-z0-9]*+|\#\d++|\#[xX][0-9A-Fa-f]++);                 # an entity
      | \{{\{{[^{{}}]*+\}}\}} | \$?\{{[^{{}}\s]*+\}}                           # {{{{name}}}}, {{0}}, ${{name}}
      | %(?:\d++\$|\(\w++\))?[-+0\#]*+\d*+(?:\.\d++)?[sdifgxu@](?![A-Za-z])    # %s, %1$d, %(name)s
    """,
    re.VERBOSE,
)
ENDS = {"<!--": "-->", "<![CDATA[": "]]>", "<?": "?>"}
PLAIN = {"tag": re.compile(r"[^<>\"']*+"), "doctype": re.compile(r"[^<>\"'\[]*+")}  # what needs no closing partner
PARTNERS = {'"': '"', "'": "'", "[": "]"}


def find_markup(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each piece of markup starts and ends."""
    scanner = _Scanner(text)
    position = 0
    while (match := START.search(text, position)) is not None:
        end = scanner.end_of(match)
        if end is None:
            position = match.start() + 1
        else:
            yield match.start(), end
            position = end


class _Scanner:
    """Finds the ends of markup in one text; what was searched for once is not searched for again."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.last_found: dict[str, tuple[int, int]] = {}
        self.in_vain: dict[str, set[int]] = {"tag": set(), "doctype": set()}

    def end_of(self, match: re.Match[str]) -> int | None:
        if match.lastgroup is None:
            return match.end()
        if match.lastgroup == "fixed":
            closing = ENDS[match[0]]
            found = self._find(closing, match.end())
            return None if found is None else found + len(closing)
        return self._end_of_tag(match.lastgroup, match.end())

    def _find(self, closing: str, start: int) -> int | None:
        """Find the next `closing`; the last answer holds for every start between its own start and what it found."""
        asked, found = self.last_found.get(closing, (0, -1))
        if not asked <= start <= found:
            found = self.text.find(closing, start)
            found = len(self.text) if found < 0 else found
            self.last_found[closing] = start, found
        return found if found < len(self.text) else None

    def _end_of_tag(self, kind: str, position: int) -> int | None:
        """Find the `>` of a tag: not within quotes, and with no `<` before it."""
        text, in_vain = self.text, self.in_vain[kind]
        if kind == "tag" and not text[position : position + 1].isspace():
            end = position + text.startswith("/", position)
            return end + 1 if text.startswith(">", end) else None
        visited = []
        while True:
            plain = PLAIN[kind].match(text, position)
            assert plain is not None
            position = plain.end()
            if text.startswith(">", position):
                return position + 1
            partner = PARTNERS.get(text[position : position + 1])
            closed = None if partner is None or position in in_vain else self._find(partner, position + 1)
            visited.append(position)
            if closed is None:
                in_vain.update(visited)
                return None
            position = closed + 1
