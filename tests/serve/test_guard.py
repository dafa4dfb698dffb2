"""Other sites can neither read nor drive the server, and beyond this machine a token is needed."""

import pytest
from fastapi.testclient import TestClient

from sightline.errors import InputError
from sightline.serve.app import create_app
from sightline.serve.running import run_server

TOKEN = "a token of some length"


@pytest.fixture(scope="module")
def guarded():
    app = create_app({}, hosts=["127.0.0.1", "models.example"], token=TOKEN)
    return lambda **options: TestClient(app, base_url="http://models.example", **options)


def test_headers_protect_every_answer(client):
    for path in ("/", "/static/figure.js", "/api/models", "/nothing"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert "access-control-allow-origin" not in headers


def test_the_page_has_no_inline_script(client):
    page = client.get("/").text
    assert page.count("<script") == 1
    assert '<script type="module" src="/static/page.js"></script>' in page
    assert "style=" not in page
    assert "<style" not in page


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "evil.example:8400", "", "[::1", "10.0.0.1"]
)
def test_a_name_that_was_rebound_is_refused(client, host):
    assert client.get("/api/models", headers={"host": host}).status_code == 421


@pytest.mark.parametrize("host", ["127.0.0.1:8400", "localhost:9", "[::1]:8400", "LOCALHOST"])
def test_names_of_this_machine_are_answered(client, host):
    assert client.get("/api/models", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9999"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_pages_of_other_sites_are_refused(client, headers):
    assert client.get("/api/models", headers=headers).status_code == 403
    assert client.post("/api/explain", json={"source": "x"}, headers=headers).status_code == 403


def test_the_page_itself_is_answered(client):
    headers = {"origin": "http://127.0.0.1:8400", "sec-fetch-site": "same-origin"}
    assert client.post("/api/score", json={"links": [[[0, 0]]], "gold": [[[0, 0]]]}, headers=headers).status_code == 200


def test_a_form_of_another_site_cannot_send_what_is_taken_for_json(client):
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        answer = client.post("/api/explain", content=b'{"source": "x"}', headers={"content-type": kind})
        assert answer.status_code == 415


def test_a_body_has_a_bound_and_a_length(client):
    long = b'{"source": "' + b"x" * 300_000 + b'"}'
    json = {"content-type": "application/json"}
    assert client.post("/api/explain", content=long, headers=json).status_code == 413
    assert client.post("/api/explain", content=iter([b"{}"]), headers=json).status_code == 411


def test_scores_sent_back_to_be_saved_may_be_longer(client):
    json = {"content-type": "application/json"}
    long = client.post("/api/page", content=b'{"attribution": {"source": "' + b"x" * 300_000 + b'"}}', headers=json)
    assert (long.status_code, long.json()["error"][:25]) == (422, "This is not the plain dat")
    assert client.post("/api/page", content=b"x" * 32_000_001, headers=json).status_code == 413


def test_without_the_token_nothing_is_told(guarded):
    client = guarded()
    assert client.get("/health").status_code == 200
    for path in ("/", "/api/models", "/static/page.js", "/api/openapi.json"):
        assert client.get(path).status_code == 401
    assert client.get("/?token=wrong", follow_redirects=False).status_code == 401
    assert client.get("/api/models", headers={"authorization": "Bearer wrong"}).status_code == 401
    assert client.get("/api/models", headers={"cookie": "sightline-token=wrong"}).status_code == 401


def test_the_token_is_taken_as_a_header_or_exchanged_for_a_cookie(guarded):
    client = guarded()
    assert client.get("/api/models", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200
    moved = client.get("/", params={"token": TOKEN}, follow_redirects=False)
    assert (moved.status_code, moved.headers["location"]) == (303, "/")
    assert "HttpOnly" in moved.headers["set-cookie"]
    assert "SameSite=Strict" in moved.headers["set-cookie"]
    assert TOKEN not in moved.headers["set-cookie"]
    assert client.get("/api/models").status_code == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.7", "models.example", "::"])
def test_listening_beyond_this_machine_asks_for_a_token(host):
    with pytest.raises(InputError, match="give --token"):
        run_server(["en-es"], host=host)


def test_a_token_has_some_length():
    with pytest.raises(InputError, match="at least 16"):
        run_server(["en-es"], token="short")
