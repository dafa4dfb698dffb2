"""Colours that people with any colour vision can tell apart: blue for positive scores, orange for negative ones.

Pages draw one colour on whatever lies behind it, with the strength as its opacity, so they suit light and dark.
Terminals cannot blend, so there a strength is a colour between a dark base and a bright end.
"""

from collections.abc import Sequence

POSITIVE = "#0b5cad"
NEGATIVE = "#c24e00"

# For text in a terminal: light enough for a black background, dark enough for a white one.
POSITIVE_TEXT = "rgb(45,135,215)"
NEGATIVE_TEXT = "rgb(215,110,20)"

# Dark to bright with lightness rising steadily, so that the order survives in grey and for every colour vision.
_POSITIVE_STOPS = ((24, 28, 38), (20, 58, 118), (28, 106, 190), (78, 166, 240), (142, 212, 255))
_NEGATIVE_STOPS = ((24, 28, 38), (104, 46, 16), (186, 84, 14), (240, 134, 36), (255, 190, 96))


def terminal_colour(strength: float) -> str:
    """Return the colour of a strength from -1 to 1 as `rgb(r,g,b)`."""
    stops = _POSITIVE_STOPS if strength >= 0 else _NEGATIVE_STOPS
    place = min(abs(strength), 1.0) * (len(stops) - 1)
    index = min(int(place), len(stops) - 2)
    red, green, blue = _between(stops[index], stops[index + 1], place - index)
    return f"rgb({red},{green},{blue})"


def _between(start: Sequence[int], end: Sequence[int], fraction: float) -> list[int]:
    return [round(a + (b - a) * fraction) for a, b in zip(start, end, strict=True)]
