"""Draw the picture of the README with the model in the box: docs/picture.svg.

python tools/draw_picture.py
"""

from __future__ import annotations

from pathlib import Path

import sightline

SENTENCE = "She gave me a red book for my birthday."
PICTURE = Path(__file__).resolve().parents[1] / "docs" / "picture.svg"


def main() -> None:
    model = sightline.load()
    translation = sightline.translate(model, SENTENCE, num_beams=4).text
    way = sightline.explain_choice(model, SENTENCE, translation).forward
    why = sightline.explain(model, SENTENCE, translation, method=way.method, **way.settings)
    PICTURE.write_text(why.words().without_special().to_svg("heat_map"), encoding="utf-8")
    print(f"{PICTURE}: {SENTENCE} {translation}")


if __name__ == "__main__":
    main()
