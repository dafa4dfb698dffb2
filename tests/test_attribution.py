"""Attribution: each operation against its literal definition, and what must hold for any of them."""

import csv
import hashlib
import json
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sightline.attribution import Attribution, Tokens, load_attributions, save_attributions
from sightline.errors import InputError
from sightline.saving import FORMATS
from sightline.sealed import SEAL, UNSEALED, write_arrays

PIECES = st.text(min_size=1, max_size=4)
SCORES = st.floats(-100, 100, width=32)


@st.composite
def tokens(draw: st.DrawFn, min_size: int = 1) -> Tokens:
    words = draw(st.lists(PIECES, min_size=min_size, max_size=4))
    pieces: list[str] = []
    ids: list[int | None] = []
    for number, word in enumerate(words):
        if draw(st.booleans()):
            pieces.append("<s>")
            ids.append(None)
        count = draw(st.integers(1, 3))
        pieces += [word[i:] for i in range(count)]
        ids += [number] * count
    return Tokens(tuple(pieces), tuple(ids), tuple(words))


@st.composite
def attributions(draw: st.DrawFn) -> Attribution:
    source, target = draw(tokens()), draw(tokens())
    prefix = draw(tokens(0)) if draw(st.booleans()) else Tokens()
    axes = draw(st.sampled_from([(), ("layer",), ("head",), ("layer", "head")]))
    shape = (*[draw(st.integers(1, 3)) for _ in axes], len(target), len(source) + len(prefix))
    values = draw(st.lists(SCORES, min_size=int(np.prod(shape)), max_size=int(np.prod(shape))))
    scores = np.array(values, dtype=np.float32).reshape(shape)
    return Attribution(scores, source, target, prefix, axes, "norms", {"layer": 1, "reading": "input"})


def small(**more: object) -> Attribution:
    source = Tokens(("▁The", "▁c", "at", "</s>"), (0, 1, 1, None), ("The", "cat"))
    target = Tokens(("▁El", "▁ga", "to", "</s>"), (0, 1, 1, None), ("El", "gato"))
    scores = np.arange(16, dtype=np.float32).reshape(4, 4)
    return Attribution(scores, source, target, **more)  # type: ignore[arg-type]


def test_words_by_hand() -> None:
    words = small().words()
    assert words.source.pieces == ("The", "cat", "</s>")
    assert words.target.word_ids == (0, 1, None)
    # Rows: [0 1 2 3], mean of [4 5 6 7] and [8 9 10 11], [12 13 14 15]; columns: 0, 1 + 2, 3.
    np.testing.assert_allclose(words.scores, [[0, 3, 3], [6, 15, 9], [12, 27, 15]])
    np.testing.assert_allclose(small().words(source="max", target="sum").scores[1], [12, 16, 18])


@given(attributions())
def test_words_keep_the_mass_of_a_row(one: Attribution) -> None:
    words = one.words(source="sum", target="sum")
    np.testing.assert_allclose(
        words.scores.sum((-1, -2), dtype=np.float64), one.scores.sum((-1, -2), dtype=np.float64), atol=1e-2
    )
    assert words.words().scores.shape == words.scores.shape
    assert len(words.source) == len({w for w in one.source.word_ids if w is not None}) + one.source.special.sum()


@given(attributions())
def test_a_partial_target_keeps_word_numbers(one: Attribution) -> None:
    last = one.take([len(one.target) - 1], range(one.scores.shape[-1])).words()
    assert last.target.word_ids == one.target.word_ids[-1:]


@given(attributions())
def test_without_special_leaves_only_words(one: Attribution) -> None:
    plain = one.without_special()
    assert not plain.source.special.any()
    assert not plain.target.special.any()
    keep_rows, keep = ~one.target.special, ~np.concatenate([one.source.special, one.prefix.special])
    np.testing.assert_array_equal(plain.scores, one.scores[..., keep_rows, :][..., keep])


@given(attributions(), st.sampled_from(["sum", "clamp", "softmax"]))
def test_normalized_rows_sum_to_one_or_are_empty(one: Attribution, by: str) -> None:
    scores = one.normalized(by).scores.astype(np.float64)  # type: ignore[arg-type]
    assert np.isfinite(scores).all()
    totals = np.abs(scores).sum(-1)
    assert np.all(np.isclose(totals, 1, atol=1e-4) | (totals == 0))


def test_normalized_by_hand() -> None:
    signed = Attribution(np.array([[1.0, -3.0]]), Tokens(("a", "b"), (0, 1), ("a", "b")), Tokens(("x",), (0,), ("x",)))
    np.testing.assert_allclose(signed.normalized("sum").scores, [[0.25, -0.75]])
    np.testing.assert_allclose(signed.normalized("clamp").scores, [[1, 0]])
    np.testing.assert_allclose(signed.normalized("softmax").scores, [[0.9820138, 0.01798621]], rtol=1e-5)
    with pytest.raises(InputError, match="softmax"):
        signed.normalized("sofmax")


def test_layers_and_heads() -> None:
    side = Tokens(("a",), (0,), ("a",))
    scores = np.arange(6, dtype=np.float32).reshape(2, 3, 1, 1)
    one = Attribution(scores, side, side, axes=("layer", "head"))
    assert one.layer(-1).scores.ravel().tolist() == [3, 4, 5]
    assert one.heads().scores.ravel().tolist() == [1, 4]
    assert one.heads(0, 2).layer(0).scores.item() == 1
    assert one.heads(1).axes == ("layer",)
    assert one.flat().scores.item() == 2.5
    with pytest.raises(InputError, match="numbered 0 to 1"):
        one.layer(2)
    with pytest.raises(InputError, match="no axis 'layer'"):
        small().layer(0)


def test_top_ranks_and_breaks_ties_to_the_left() -> None:
    side = Tokens(("a", "b", "c"), (0, 1, 2), ("a", "b", "c"))
    one = Attribution(np.array([[1.0, 3.0, 3.0]]), side, Tokens(("x",), (0,), ("x",)))
    assert [(top.column, top.token) for top in one.top(2)[0]] == [(1, "b"), (2, "c")]
    with pytest.raises(InputError, match="layer"):
        Attribution(np.zeros((2, 1, 3)), side, Tokens(("x",), (0,), ("x",)), axes=("layer",)).top()


def test_nothing_can_be_changed() -> None:
    scores = np.zeros((4, 4), dtype=np.float32)
    one = small()
    with pytest.raises(ValueError, match="read-only"):
        one.scores[0, 0] = 1
    with pytest.raises(TypeError):
        one.settings["layer"] = 2  # type: ignore[index]
    with pytest.raises(AttributeError):
        one.method = "other"  # type: ignore[misc]
    copy = Attribution(scores, one.source, one.target)
    scores[0, 0] = 5
    assert copy.scores[0, 0] == 0


@given(attributions())
def test_plain_data_round_trip(one: Attribution) -> None:
    assert Attribution.from_dict(json.loads(json.dumps(one.to_dict()))) == one
    assert pickle.loads(pickle.dumps(one)) == one


@given(st.lists(attributions(), max_size=4))
def test_file_round_trip(tmp_path_factory: pytest.TempPathFactory, several: list[Attribution]) -> None:
    path = tmp_path_factory.mktemp("files") / "some.parquet"
    assert save_attributions(iter(several), path) == len(several)
    assert list(load_attributions(path)) == several


def test_a_file_is_compact_and_never_half_written(tmp_path) -> None:
    side = Tokens(tuple("abcdefghij"), tuple(range(10)), tuple("abcdefghij"))
    random = np.random.default_rng(0)
    several = [Attribution(random.random((10, 10)), side, side, method="norms") for _ in range(2000)]
    path = tmp_path / "many.parquet"
    save_attributions(several, path)
    assert path.stat().st_size < 2000 * (400 + 100)

    def broken():
        yield several[0]
        raise RuntimeError("the power went")

    with pytest.raises(RuntimeError):
        save_attributions(broken(), tmp_path / "half.parquet")
    assert [file.name for file in tmp_path.iterdir()] == ["many.parquet"]


def few_in_a_file(path) -> list[Attribution]:
    side = Tokens(tuple("abcde"), (0, 0, 1, 2, None), tuple("xyz"))
    random = np.random.default_rng(0)
    several = [Attribution(random.random((2, 5, 5)), side, side, axes=("layer",), method="norms") for _ in range(300)]
    save_attributions(several, path)
    return several


def test_every_flipped_bit_is_noticed(tmp_path) -> None:
    path = tmp_path / "some.parquet"
    several = few_in_a_file(path)
    assert list(load_attributions(path)) == several
    before = path.read_bytes()
    random = np.random.default_rng(1)
    end = len(before) - 2000  # half of the bits are those of the metadata
    places = np.concatenate([random.integers(0, end, 1000), random.integers(end, len(before), 1000)])
    for place, bit in zip(places, random.integers(0, 8, 2000), strict=True):
        data = bytearray(before)
        data[place] ^= 1 << bit
        path.write_bytes(data)
        with pytest.raises(InputError, match="not a file of attributions that Sightline wrote"):
            next(load_attributions(path))


def test_files_that_were_cut_or_mixed_are_noticed(tmp_path) -> None:
    path, other = tmp_path / "some.parquet", tmp_path / "other.parquet"
    few_in_a_file(path)
    save_attributions([small()], other)
    data, donor = path.read_bytes(), other.read_bytes()
    for changed in (
        data[:-1],
        data[:100],
        data[4:],
        data + b"x",
        data[: len(data) // 2] + donor,
        b"PAR1",
        b"",
        donor[:8],
    ):
        path.write_bytes(changed)
        with pytest.raises(InputError, match="not a file of attributions"):
            list(load_attributions(path))


def reseal(path, data: bytes) -> None:
    """Write a file with the checksum that it should have, as somebody would who means harm."""
    length = int.from_bytes(data[-8:-4], "little") + 8
    blank = data[:-length] + SEAL.sub(UNSEALED, data[-length:])
    path.write_bytes(data[:-length] + SEAL.sub(b"sha256:" + hashlib.sha256(blank).hexdigest().encode(), data[-length:]))


def wrong_labels() -> dict[str, dict[str, object]]:
    labels = small().labels()
    side = labels["source"]
    return {
        "its axes are not": labels | {"axes": ["layer"]},
        "its scores are": labels | {"target": side | {"tokens": [], "word_ids": []}},
        "it has no field 'method'": {"source": side},
        "its field 'settings' is a list": labels | {"settings": []},
        "words that it lacks": labels | {"source": side | {"word_ids": [99] * len(side["word_ids"])}},
        "a word each": labels | {"source": side | {"word_ids": []}},
    }


@pytest.mark.parametrize("complaint", wrong_labels())
def test_labels_and_scores_must_fit(tmp_path, complaint: str) -> None:
    path = tmp_path / "some.parquet"
    labels = wrong_labels()[complaint]
    write_arrays([(labels, small().scores)], path)
    with pytest.raises(InputError, match=complaint):
        list(load_attributions(path))
    with pytest.raises(InputError, match=r"This is not the plain data of an attribution"):
        Attribution.from_dict(labels | {"scores": small().scores})


def test_shapes_are_checked_before_scores_are_read(tmp_path, monkeypatch) -> None:
    import pyarrow.parquet as pq

    path = tmp_path / "some.parquet"
    table = {"labels": [json.dumps(small().labels())], "shape": [list(small().scores.shape)], "scores": [[0.5] * 3]}
    types = [pa.string(), pa.list_(pa.int32()), pa.list_(pa.float32())]
    arrays = [pa.array(values, kind) for values, kind in zip(table.values(), types, strict=True)]
    with pq.ParquetWriter(path, pa.schema(dict(zip(table, types, strict=True))), write_statistics=False) as writer:
        writer.write_table(pa.table(arrays, list(table)))
        writer.add_key_value_metadata({"sightline": UNSEALED.decode()})
    reseal(path, path.read_bytes())
    read = []
    whole = pq.ParquetFile.read_row_group
    monkeypatch.setattr(
        pq.ParquetFile, "read_row_group", lambda *a, columns: (read.append(columns), whole(*a, columns))[1]
    )
    with pytest.raises(InputError, match="shapes are not those of its scores"):
        list(load_attributions(path))
    assert read == [["labels", "shape"]]


def test_a_file_for_others_too(tmp_path) -> None:
    """Any program reads it; a pipe takes it."""
    import pyarrow.parquet as pq

    several = few_in_a_file(tmp_path / "some.parquet")
    assert pq.read_table(tmp_path / "some.parquet").num_rows == len(several)
    code = (
        "import sys; from sightline import load_attributions as load, save_attributions as save;"
        "save(load(sys.argv[1]), '/dev/stdout', 'parquet')"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "some.parquet")], stdout=subprocess.PIPE, check=True
    )
    (tmp_path / "copy.parquet").write_bytes(run.stdout)
    assert list(load_attributions(tmp_path / "copy.parquet")) == several


def test_files_that_are_not_ours(tmp_path) -> None:
    (tmp_path / "text").write_text("hello")
    with pytest.raises(InputError, match="not a file of attributions"):
        list(load_attributions(tmp_path / "text"))
    with pytest.raises(InputError, match="no file"):
        Attribution.load(tmp_path / "missing")


def test_dataframe_has_a_row_per_score() -> None:
    frame = small().to_dataframe()
    assert len(frame) == 16
    row = frame[(frame.target == 1) & (frame.column == 2)].iloc[0]
    assert (row.target_token, row.column_token, row.score, row.side) == ("▁ga", "at", 6, "source")


def test_bertviz_shape() -> None:
    side = Tokens(("a", "b"), (0, 1), ("a", "b"))
    export = Attribution(np.zeros((3, 4, 2, 2)), side, side, axes=("layer", "head")).to_bertviz()
    assert [tuple(layer.shape) for layer in export["cross_attention"]] == [(1, 4, 2, 2)] * 3
    assert all(isinstance(layer, torch.Tensor) for layer in export["cross_attention"])
    # The parameters of BertViz's head_view and model_view for attention between two different lines.
    assert export.keys() == {"cross_attention", "encoder_tokens", "decoder_tokens"}
    assert tuple(small().to_bertviz()["cross_attention"][0].shape) == (1, 1, 4, 4)


# Files by their suffix


def test_formats_by_suffix(tmp_path: Path) -> None:
    one, other = small(method="norms"), small(method="attention", axes=())
    for name in FORMATS:
        one.save(tmp_path / f"one.{name}")
    assert Attribution.load(tmp_path / "one.parquet") == one
    assert Attribution.from_dict(json.loads((tmp_path / "one.json").read_text())) == one
    assert (tmp_path / "one.svg").read_text() == one.to_svg()
    assert (tmp_path / "one.html").read_text() == one.to_html()
    assert (tmp_path / "one.png").read_bytes().startswith(b"\x89PNG")
    assert save_attributions(iter([one, other]), tmp_path / "two.jsonl") == 2
    plain = [json.loads(line) for line in (tmp_path / "two.jsonl").read_text().splitlines()]
    assert [Attribution.from_dict(line) for line in plain] == [one, other]
    assert save_attributions([one, other], tmp_path / "two.html") == 2
    page = (tmp_path / "two.html").read_text()
    assert page.count('class="heat-map"') == 2
    one.save(tmp_path / "page", format="html")
    assert (tmp_path / "page").read_text() == one.to_html()


def test_one_row_of_csv_a_score(tmp_path: Path) -> None:
    path = tmp_path / "many.csv"
    save_attributions([small(), small()], path)
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 16
    assert rows[16 + 6] == {
        "example": "1",
        "target": "1",
        "target_token": "▁ga",
        "column": "2",
        "column_token": "at",
        "side": "source",
        "score": "6.0",
    }


@pytest.mark.parametrize(
    ("name", "count", "message"),
    [
        ("why.txt", 1, "the suffix .txt names no format: end the file's name with .parquet, .jsonl"),
        ("why", 1, "the suffix \\(none\\) names no format"),
        ("why.png", 2, "can hold one attribution, not 2: save them as .html"),
        ("why.json", 2, "can hold one attribution, not 2: save them as .jsonl"),
    ],
)
def test_files_that_cannot_be_are_refused(tmp_path: Path, name: str, count: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        save_attributions([small()] * count, tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_attributions_of_different_axes_have_no_common_table(tmp_path: Path) -> None:
    side = Tokens(("a",), (0,), ("a",))
    layered = Attribution(np.zeros((1, 1, 1)), side, side, axes=("layer",))
    with pytest.raises(InputError, match="different axes"):
        save_attributions([small(), layered], tmp_path / "many.csv")
