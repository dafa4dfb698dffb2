"""JSON is read as it was written, or refused in one sentence."""

import json
from typing import Any

import pytest

from sightline.errors import InputError
from sightline.json_files import check_fields, parse_json, read_json, write_json

FIELDS = {"step": int, "seconds": float, "best": float | None, "name": str, "data": Any}
GOOD = {"step": 1, "seconds": 2, "best": None, "name": "é", "data": [True]}


def test_json_as_it_was_written(tmp_path):
    path = tmp_path / "file.json"
    write_json(path, GOOD)
    assert read_json(path, FIELDS, "Do so.") == GOOD
    assert path.read_text(encoding="utf-8").startswith('{\n  "step"')
    assert parse_json('{"a": [NaN, -Infinity, 1.5], "b": "\\ud83d\\ude00"}') == {"a": [None, None, 1.5], "b": "😀"}
    assert check_fields({"flag": True}, {"flag": bool})


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", r"it is not JSON \(line 1"),
        (json.dumps(GOOD).encode()[:-5], r"it is not JSON"),
        (b"\xff\xfe", "it is not UTF-8"),
        (bytes(100), "it is not JSON"),
        (b"[1, 2]", "it holds a list, not an object"),
        (b"null", "it holds null"),
        (b"7", "it holds a number"),
        (json.dumps(GOOD | {"step": "1"}).encode(), "its field 'step' is a text"),
        (json.dumps(GOOD | {"step": 1.5}).encode(), "its field 'step' is a number"),
        (json.dumps(GOOD | {"step": True}).encode(), "its field 'step' is true or false"),
        (json.dumps(GOOD | {"seconds": float("nan")}).encode(), "its field 'seconds' is null"),
        (json.dumps(GOOD | {"name": {}}).encode(), "its field 'name' is an object"),
        (json.dumps({"step": 1}).encode(), "it has no field 'seconds'"),
        (b'{"step": 1' + b"0" * 30 + b"}", "the number 10000000000000000000... is too large"),
        (b'{"step": 1' + b"0" * 9999 + b"}", "is too large"),
        (b'{"seconds": 1e999}', "the number 1e999 is too large"),
        (b'{"data": ' + b"[" * 101 + b"]" * 101 + b"}", "nested more than 100 deep"),
        (b"[" * 100_000, "nested more than 100 deep"),
        (rb'{"name": "\ud800"}', "half of a surrogate pair"),
    ],
)
def test_damaged_json_is_one_sentence(tmp_path, data, complaint):
    path = tmp_path / "file.json"
    path.write_bytes(data)
    with pytest.raises(InputError, match=rf"file\.json is damaged: .*{complaint}.*\. Remove it\.$") as caught:
        read_json(path, FIELDS, "Remove it.")
    assert len(str(caught.value)) < 300 + len(str(path))


def test_json_that_cannot_be_read(tmp_path):
    for path in (tmp_path, tmp_path / "missing"):
        with pytest.raises(InputError, match=r"cannot be read: .*\. Remove it\.$"):
            read_json(path, FIELDS, "Remove it.")
