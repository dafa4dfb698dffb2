"""The API answers what the verbs return, refuses in one sentence, and never runs what it should not."""

import json

import numpy as np
import pytest
import zoo
from fastapi.testclient import TestClient
from serve.conftest import wait_for_models

import sightline
from sightline.attribution import Attribution
from sightline.serve.app import create_app
from sightline.serve.limits import Limits

SENTENCE, TRANSLATION = "The black cat sleeps.", "El gato negro duerme."


def post(client, path, body, **options):
    return client.post(f"/api/{path}", json=body, **options)


def test_explain_answers_what_python_returns(client, models):
    body = {"source": SENTENCE, "target": TRANSLATION, "method": "norms", "settings": {"layer": -1}}
    answer = post(client, "explain", body)
    assert answer.status_code == 200
    expected = sightline.explain(models["en-es"], SENTENCE, TRANSLATION, method="norms", layer=-1)
    found = Attribution.from_dict(answer.json())
    assert found.labels() == expected.labels()
    np.testing.assert_allclose(found.scores, expected.scores, atol=1e-5)
    assert answer.json()["defaults"]["layer"] == "all"


def test_explain_without_a_target_lets_the_model_answer(client, models):
    answer = post(client, "explain", {"source": SENTENCE}).json()
    assert answer["method"] == "norms"
    assert answer["target"]["words"] == sightline.explain(models["en-es"], SENTENCE).target.to_dict()["words"]


@pytest.mark.parametrize(("model", "source"), [("reviews", "A fine film."), ("stories", "The cat sees")])
def test_every_task_is_explained(client, model, source):
    answer = post(client, "explain", {"source": source, "model": model, "method": "gradient"})
    assert answer.status_code == 200
    assert len(answer.json()["scores"]) == len(answer.json()["target"]["tokens"])


def test_align_answers_what_python_returns(client, models):
    sources, targets = [SENTENCE, "The dog sees a bird."], [TRANSLATION, "El perro ve un pájaro."]
    answer = post(client, "align", {"source": sources, "target": targets}).json()["alignments"]
    for found, links in zip(answer, sightline.align(models["en-es"], sources, targets), strict=True):
        assert [(i, j) for i, j, _ in found["links"]] == list(links)
        assert [c for _, _, c in found["links"]] == pytest.approx(list(links.confidences.values()), abs=1e-3)
    one = post(client, "align", {"source": SENTENCE, "target": TRANSLATION}).json()["alignments"]
    assert one == answer[:1]


def test_the_other_direction_of_a_model_that_has_both(client):
    answer = post(client, "translate", {"source": "El gato duerme.", "source_lang": "es"}).json()
    assert answer["text"] == "The cat sleeps."
    refused = post(client, "translate", {"source": "Le chat dort.", "source_lang": "fr"})
    assert (refused.status_code, refused.json()["error"]) == (422, "This model does not read the language 'fr'.")


def read_events(text):
    events = []
    for block in text.strip().split("\n\n"):
        kind, data = block.split("\n")
        events.append((kind.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return events


def test_a_translation_is_streamed_word_by_word_with_its_links(client, models):
    answer = post(client, "translate", {"source": SENTENCE}, headers={"accept": "text/event-stream"})
    assert answer.headers["content-type"].startswith("text/event-stream")
    *words, (last, done) = read_events(answer.text)
    expected = list(sightline.stream_translation(models["en-es"], SENTENCE))
    assert [kind for kind, _ in words] == ["word"] * len(expected)
    assert last == "done"
    assert done["text"] == " ".join(word.word for word in expected)
    for (_, found), word in zip(words, expected, strict=True):
        assert found["word"] == word.word
        assert [source for source, _ in found["links"]] == sorted(word.sources)


def test_a_stream_that_cannot_be_tells_so(client):
    answer = post(client, "translate", {"source": "x", "model": "reviews"}, headers={"accept": "text/event-stream"})
    assert (answer.status_code, answer.json()["error"]) == (
        422,
        "The model reviews does not translate: choose another.",
    )
    long = post(client, "translate", {"source": "a " * 215}, headers={"accept": "text/event-stream"})
    [(kind, data)] = read_events(long.text)
    assert kind == "error"
    assert "tokens" in data["error"]


EVENTS = {"accept": "text/event-stream"}


def test_a_continuation_is_streamed_word_by_word(client, models):
    body = {"source": "The cat sees", "model": "stories"}
    answer = post(client, "continue", body, headers=EVENTS)
    assert answer.headers["content-type"].startswith("text/event-stream")
    *words, (last, done) = read_events(answer.text)
    assert last == "done"
    expected = sightline.explain(models["stories"], "The cat sees").target
    assert [(kind, data["number"], data["word"]) for kind, data in words] == [
        ("word", number, word) for number, word in enumerate(expected.words)
    ]
    assert len(words) > 3
    assert done["text"].split() == list(expected.words)
    whole = post(client, "continue", body).json()
    assert (whole["text"], whole["words"], whole["target"]) == (done["text"], list(expected.words), done["target"])


def test_what_was_streamed_is_what_is_explained(client, models, monkeypatch):
    stories = models["stories"]
    monkeypatch.setattr(stories.module.generation_config, "do_sample", True)  # as in the settings of many models
    streamed = post(client, "continue", {"source": "The cat sees", "model": "stories"}).json()
    body = {"source": "The cat sees", "model": "stories"}
    own = post(client, "explain", body).json()["target"]
    assert own["words"] == streamed["words"]
    as_text = stories.encode("The cat sees", " ".join(streamed["words"]))
    is_same = list(as_text.target.pieces) == own["tokens"]
    assert streamed["target"] == (" ".join(streamed["words"]) if is_same else None)


def test_a_continuation_that_cannot_be_tells_so(client):
    for headers in ({}, EVENTS):
        answer = post(client, "continue", {"source": "x", "model": "reviews"}, headers=headers)
        assert (answer.status_code, answer.json()["error"]) == (
            422,
            "The model reviews does not continue texts: choose another.",
        )
    long = {"source": "a b " * 120, "model": "stories"}
    [(kind, data)] = read_events(post(client, "continue", long, headers=EVENTS).text)
    assert kind == "error"
    assert "too long" in data["error"]
    assert post(client, "continue", long).json() == data


def test_tags_carry_markup_over(client):
    answer = post(client, "tags", {"source": "We saw <b>a white dog</b> in the <i>garden</i>."}).json()
    assert answer["markup"] == "Vimos <b>un perro blanco</b> en el <i>jardín</i>."
    assert answer["text"] == "Vimos un perro blanco en el jardín."


def test_contrast_lists_alternatives_and_says_what_speaks_for_which(client, models):
    body = {"source": "The dog sleeps.", "target": "El perro duerme.", "position": 1}
    listed = post(client, "contrast", body).json()
    assert listed["alternatives"][0]["text"] == "perro"
    assert listed["attribution"] is None
    why = post(client, "contrast", body | {"contrast": "gato", "settings": {"signed": True}}).json()["attribution"]
    expected = sightline.contrast(models["en-es"], "The dog sleeps.", "El perro duerme.", "gato", word=1, signed=True)
    np.testing.assert_allclose(why["scores"], expected.scores, atol=1e-5)


def test_faithfulness_compares_methods(client):
    answer = post(client, "faithfulness", {"source": SENTENCE, "methods": ["erasure", "random"]}).json()
    assert [one["method"] for one in answer] == ["erasure", "random"]
    assert answer[0]["comprehensiveness"]["mean"] > answer[1]["comprehensiveness"]["mean"]


def test_links_are_scored(client):
    answer = post(client, "score", {"links": [[[0, 0], [1, 1], [2, 2]]], "gold": [[[0, 0], [1, 1], [2, 3]]]}).json()
    assert answer["AER"]["value"] == pytest.approx(100 / 3)


def test_a_page_is_made_of_what_was_answered(client):
    answer = post(client, "explain", {"source": SENTENCE}).json()
    page = post(client, "page", {"attribution": answer})
    assert page.headers["content-type"].startswith("text/html")
    assert page.text == Attribution.from_dict(answer).to_html()
    assert post(client, "page", {"attribution": {"scores": "x"}}).status_code == 422


def test_models_and_methods_are_listed(client):
    models = {one["name"]: one for one in client.get("/api/models").json()}
    assert models["en-es"]["languages"] == ["en", "es"]
    assert models["en-es-calibrated"]["calibrated"]
    assert len(models["reviews"]["labels"]) > 1
    methods = {one["name"]: one for one in client.get("/api/methods").json()}
    assert methods["erasure"]["does"] == "What changes when a word is left out."
    assert methods["norms"]["settings"]["layer"] == "all"
    assert all(one["cost"] for one in methods.values())
    assert client.get("/health").json() == {"status": "ok"}
    assert client.get("/ready").json() == {"status": "ready"}


REFUSED = {
    "a method": ("explain", {"source": "x", "method": "norm"}, 422, "Did you mean 'norms'?"),
    "a setting": ("explain", {"source": "x", "settings": {"layr": 1}}, 422, "Did you mean 'layer'?"),
    "a key": ("explain", {"source": "x", "metod": "norms"}, 422, "Did you mean 'method'?"),
    "a model": ("explain", {"source": "x", "model": "/etc"}, 422, "There is no model on this server '/etc'."),
    "a folder": ("translate", {"source": "x", "model": "../../models"}, 422, "no model on this server"),
    "nothing": ("explain", {"source": "  "}, 422, "source"),
    "no source": ("explain", {}, 422, "source"),
    "characters": ("explain", {"source": "ab " * 3000}, 413, "characters"),
    "tokens": ("explain", {"source": "a " * 215}, 413, "tokens"),
    "samples": ("explain", {"source": "x", "method": "gradient", "settings": {"smoothgrad": 500}}, 422, "at most 10"),
    "lines": ("align", {"source": ["a"] * 21, "target": ["b"] * 21}, 413, "lines"),
    "unequal sides": ("align", {"source": ["a", "b"], "target": ["b"]}, 422, "as many of each"),
    "a word": ("contrast", {"source": "x", "target": "y", "position": 7}, 422, "There is no word 7"),
    "the same word": ("contrast", {"source": "x", "target": "y", "contrast": "y"}, 422, "name another word"),
    "no contrast": (
        "contrast",
        {"source": "x", "target": "y", "contrast": "z", "method": "norms"},
        422,
        "cannot contrast two outputs",
    ),
    "no gold": ("score", {"links": [[[0, 0]]], "gold": [[]]}, 422, "no sure link"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_mistakes_are_refused_in_one_sentence(client, name):
    path, body, status, part = REFUSED[name]
    answer = post(client, path, body)
    assert answer.status_code == status
    assert part in answer.json()["error"]
    assert "Traceback" not in answer.text


@pytest.mark.parametrize(("path", "headers"), [("explain", {}), ("translate", EVENTS)])
def test_a_full_queue_and_a_model_that_loads_have_their_status(path, headers):
    app = create_app({"tiny": zoo.fresh("marian")}, Limits(waiting=0))
    not_started = TestClient(app, base_url="http://127.0.0.1")
    loading = post(not_started, path, {"source": "x"}, headers=headers)
    assert (loading.status_code, loading.headers["retry-after"]) == (503, "1")
    assert "still loading tiny" in loading.json()["error"]
    with TestClient(app, base_url="http://127.0.0.1") as started:
        wait_for_models(app)
        full = post(started, path, {"source": "x"}, headers=headers)
    assert (full.status_code, full.headers["retry-after"]) == (429, "1")
    assert "requests are waiting already" in full.json()["error"]


def test_a_body_that_is_no_json(client):
    answer = client.post("/api/explain", content=b"{", headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["error"]) == (400, "The body is not valid JSON.")


def test_addresses_that_do_not_exist(client):
    for path in ("/static/../app.py", "/static/nothing.js", "/etc/passwd", "/api/", "/docs"):
        assert client.get(path).status_code == 404


def test_the_schema_has_examples_that_work(client):
    schema = client.get("/api/openapi.json").json()
    for path in ("explain", "align", "translate", "contrast", "faithfulness"):
        name = schema["paths"][f"/api/{path}"]["post"]["requestBody"]["content"]["application/json"]["schema"]["$ref"]
        fields = schema["components"]["schemas"][name.rsplit("/", 1)[-1]]["properties"]
        example = {key: field["examples"][0] for key, field in fields.items() if "examples" in field}
        assert post(client, path, example).status_code == 200
