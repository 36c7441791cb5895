"""Answers that the framework and not a view decides on."""

import json
import uuid
from io import BytesIO

from app.web.request import JSON_BODY_LIMIT
from tests.support.api import SECURITY_HEADERS
from tests.support.factories import change_user

CREDENTIALS = {"identifier": "nobody", "password": "wrong password"}


def padded(size: int) -> bytes:
    """Return a well-formed login body of exactly `size` bytes."""
    start = json.dumps(CREDENTIALS)[:-1] + ', "padding": "'
    return (start + "x" * (size - len(start) - 2) + '"}').encode()


def chunked(body: bytes) -> dict:
    """Return client options for a body of unknown length, as gunicorn passes on a chunked one."""
    return {
        "input_stream": BytesIO(body),
        "content_type": "application/json",
        "environ_overrides": {"wsgi.input_terminated": True, "HTTP_TRANSFER_ENCODING": "chunked"},
    }


def test_an_unknown_path_is_endpoint_not_found(api):
    for path in ("/api/v1/nothing", "/api/v1/auth/nothing/at/all", "/api/v1/"):
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
            api.call(method, path).fails(404, "endpoint.not_found")


def test_a_path_outside_the_api_is_enveloped_too(app):
    answer = app.test_client().get("/somewhere")
    assert answer.status_code == 404
    assert list(answer.json) == ["code", "msg", "data", "error"]
    assert answer.json["code"] == "endpoint.not_found"


def test_a_wrong_method_names_the_right_ones(api):
    answer = api.get("/auth/login").fails(405, "endpoint.not_found")
    assert set(answer.headers["Allow"].split(", ")) == {"OPTIONS", "POST"}
    api.delete("/auth/me").fails(405, "endpoint.not_found")
    api.call("BREW", "/auth/me").fails(405, "endpoint.not_found")


def test_options_needs_no_login_and_tells_the_methods(api):
    answer = api.call("OPTIONS", "/auth/me")
    assert answer.status == 200
    assert "GET" in answer.headers["Allow"]


def test_head_answers_like_get_without_a_body(signed_in):
    answer = signed_in.call("HEAD", "/auth/me")
    assert (answer.status, answer.body) == (200, b"")


def test_every_answer_carries_the_security_headers(api, app):
    for answer in (api.get("/health"), api.get("/nowhere"), api.post("/auth/check")):
        assert {name: answer.headers[name] for name in SECURITY_HEADERS} == SECURITY_HEADERS


def test_every_answer_has_a_request_id_of_its_own(api):
    sent = str(uuid.uuid4())
    ids = {
        api.post("/auth/check", headers={"X-Request-ID": sent}).headers["X-Request-ID"]
        for _ in range(3)
    }
    assert len(ids) == 3
    assert sent not in ids


def test_json_of_the_api_is_never_stored(signed_in):
    for path in ("/auth/me", "/auth/sessions", "/auth/nothing", "/openapi.json"):
        assert signed_in.get(path).headers.getlist("Cache-Control") == ["no-store"], path


def test_the_frontends_configuration_may_be_kept_for_a_minute(api):
    answer = api.get("/public/frontend-config")
    assert answer.headers["Cache-Control"] == "public, max-age=60"


def test_an_empty_payload_is_null(signed_in):
    answer = signed_in.post("/auth/logout")
    assert answer.json == {"code": "success", "msg": "", "data": None, "error": None}


def test_text_is_sent_as_utf_8(rt, api, user):
    change_user(rt, user, preferences='{"custom_note": "Grüße, 世界 \\ud83d\\ude00"}')
    api.login(user).ok()
    assert "Grüße, 世界 😀".encode() in api.me().body


# --- bodies ------------------------------------------------------------------------------------


def test_a_malformed_body_is_a_bad_request(api):
    for body in (
        b"",
        b"   ",
        b"{",
        b'{"identifier": "a", "password": "b"',
        b"{'identifier': 'a'}",
        b'{"identifier": "a", "password": "b"} trailing',
        b'\xff\xfe{"identifier"',
        b'{"identifier": "\xe4\xf6", "password": "x"}',
        b'{"identifier": NaN, "password": "b"}',
        b'{"identifier": "a", "password": "b", "extra": Infinity}',
        b'{"identifier": -Infinity, "password": "b"}',
        b"[" * 100_000,
        b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        b'{"identifier": ' + b"[" * 100_000 + b"]" * 100_000 + b', "password": "b"}',
        b'{"identifier": ' + b"9" * 100_000 + b', "password": "b"}',
        b"\x00",
        *(json.dumps(CREDENTIALS).encode(f"utf-{name}") for name in ("16", "16-le", "32-be")),
    ):
        answer = api.post("/auth/login", body).fails(400, "bad_request")
        assert "invalid JSON request body" in answer.json["msg"], body[:50]


def test_a_body_that_is_no_object_is_a_bad_request(api):
    for body in ("null", "1", '"text"', "[]", "[{}]", "true", "1e999"):
        assert api.post("/auth/login", body.encode()).code == "bad_request", body


def test_a_body_of_another_type_is_a_bad_request(api):
    body = json.dumps(CREDENTIALS).encode()
    for content_type in (
        None,
        "",
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "json",
        "text/json",
        "application/problem+json",
        "application/jsonx",
    ):
        answer = api.post("/auth/login", body, headers={"Content-Type": content_type})
        assert "application/json" in answer.fails(400, "bad_request").json["msg"], content_type


def test_spellings_of_the_right_type_are_understood(api):
    body = json.dumps(CREDENTIALS).encode()
    for content_type in (
        "application/json; charset=utf-8",
        "APPLICATION/JSON",
        "application/json;",
    ):
        answer = api.post("/auth/login", body, headers={"Content-Type": content_type})
        assert answer.code == "auth.credentials_failed", content_type


def test_a_field_that_is_missing_or_no_text_is_named(api):
    wrong = [None, 1, 1.5, True, [], {}, ["a"], {"a": "b"}, 2**70, "nul\x00", "half \ud800"]
    for field in CREDENTIALS:
        without = {name: value for name, value in CREDENTIALS.items() if name != field}
        for body in (without, *({**without, field: value} for value in wrong)):
            answer = api.post("/auth/login", body).fails(400, "bad_request")
            assert field in answer.json["msg"], body


def test_all_faulty_fields_are_named_at_once(api):
    """A form can mark each of them; the envelope has no member for a list."""
    answer = api.post("/auth/register", {"username": 1, "email": "ada@example.com"})
    answer.fails(400, "bad_request")
    assert answer.json["msg"] == (
        "invalid JSON request body: "
        "username: must be a string; password: Missing data for required field"
    )


def test_no_more_than_ten_faults_are_named(signed_in):
    body = {"remove_custom_keys": [1] * 300_000}
    answer = signed_in.call("PATCH", "/auth/preferences", body).fails(400, "bad_request")
    named = answer.json["msg"].removeprefix("invalid JSON request body: ").split("; ")
    assert named[0] == "remove_custom_keys.0: must be a string"
    assert (len(named), named[-1]) == (11, "and more")


def test_unknown_members_are_ignored(api):
    extra = {"remember": True, "nested": {"a": [1, None]}, "": "", "\ud800": "\ud800"}
    api.post("/auth/login", CREDENTIALS | extra).fails(401, "auth.credentials_failed")


def test_a_body_of_exactly_one_mebibyte_is_read(api):
    body = padded(JSON_BODY_LIMIT)
    assert len(body) == 1024 * 1024
    api.post("/auth/login", body).fails(401, "auth.credentials_failed")


def test_a_body_of_one_byte_more_is_too_large(api):
    api.post("/auth/login", padded(JSON_BODY_LIMIT + 1)).fails(413, "file.too_large")


def test_a_chunked_body_of_exactly_one_mebibyte_is_read(api):
    answer = api.post("/auth/login", **chunked(padded(JSON_BODY_LIMIT)))
    answer.fails(401, "auth.credentials_failed")


def test_a_chunked_body_of_one_byte_more_is_too_large(api):
    answer = api.post("/auth/login", **chunked(padded(JSON_BODY_LIMIT + 1)))
    answer.fails(413, "file.too_large")


def test_a_body_that_ends_too_early_is_not_carried_out(api, user):
    """What has arrived may be well-formed by chance (RFC 9112 §8)."""
    body = json.dumps({"identifier": user.username, "password": user.password}).encode()
    lengths = {"CONTENT_LENGTH": str(len(body) + 1)}
    headers = {"Content-Type": "application/json"}
    early = {**lengths, "wsgi.input": BytesIO(body), "wsgi.input_terminated": True}
    api.post("/auth/login", headers=headers, environ_overrides=early).fails(400, "bad_request")


def test_a_lie_about_the_length_does_not_help(api):
    answer = api.post(
        "/auth/login",
        padded(JSON_BODY_LIMIT + 1),
        environ_overrides={"CONTENT_LENGTH": "nonsense"},
    )
    assert answer.status in {400, 413}


def test_a_very_long_text_is_a_bad_request(api):
    for value in ("x" * (1024 * 1024 - 100), "é" * 100_000):
        api.post("/auth/login", CREDENTIALS | {"identifier": value}).fails(400, "bad_request")


def test_a_body_where_none_is_expected_does_no_harm(api):
    api.post("/auth/check", b"[[[").ok()
    api.post("/auth/check", b"x" * (2 * 1024 * 1024)).ok()


def test_a_malformed_host_never_breaks_an_answer(api):
    for host in ("", "exa mple.com", "a" * 600, "[::1", "host:port", "a/b", "é"):
        sent = host.encode().decode("latin-1")
        answer = api.post("/auth/check", headers={"Host": sent}, described=False)
        assert answer.status in {200, 400}, host
