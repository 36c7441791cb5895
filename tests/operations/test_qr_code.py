"""The QR code of the page /settings/security: what it draws, for whom, and what it refuses."""

import logging
import re
import threading
from xml.etree import ElementTree

import pytest
import segno

from app.core.config import Bucket
from app.core.thread_pool import ThreadPool
from app.mfa import totp
from app.operations import reference
from app.operations.reference import CONTENT_SECURITY_POLICY
from app.operations.schemas import MAX_OTPAUTH_URI_LENGTH
from app.web.request import JSON_BODY_LIMIT
from tests.support.api import ApiClient

PATH = "/docs/qr-code"
SECRET = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"
URI = totp.otpauth_uri(SECRET, "Gatehouse", "ada@example.com")
LONGEST = URI + "x" * (MAX_OTPAUTH_URI_LENGTH - len(URI))
QUIET_ZONE = SCALE = 4


def draw(api, uri=URI, **options):
    return api.post(PATH, {"otpauth_uri": uri}, **options)


def dark_squares(svg):
    """Return the side of a drawing in squares, and the places of those that are dark."""
    picture = ElementTree.fromstring(svg)
    [group] = picture
    ground, squares = group
    side = int(re.fullmatch(r"M0 0h(\d+)v\1h-\1z", ground.get("d"))[1])
    assert picture.get("viewBox") == f"0 0 {SCALE * side} {SCALE * side}"
    assert group.get("transform") == f"scale({SCALE})"
    assert (ground.get("fill"), squares.get("stroke")) == ("#fff", "#000")
    found, x, y = set(), 0, 0.0
    for command, numbers in re.findall(r"([Mmh])([-\d. ]+)", squares.get("d")):
        across, *down = map(float, numbers.replace("-", " -").split())
        if command == "h":
            found |= {(x + step, int(y)) for step in range(int(across))}
        elif command == "M":
            x = y = 0
        x += int(across)
        y += sum(down)
    return side, found


@pytest.mark.parametrize("uri", [URI, LONGEST], ids=["usual", "longest"])
def test_the_drawing_has_the_squares_of_the_code_and_its_quiet_zone(api, uri):
    answer = draw(api, uri)
    assert answer.status == 200
    matrix = segno.make_qr(uri, error="l").matrix
    expected = {
        (x + QUIET_ZONE, y + QUIET_ZONE)
        for y, row in enumerate(matrix)
        for x, is_dark in enumerate(row)
        if is_dark
    }
    assert dark_squares(answer.body) == (len(matrix) + 2 * QUIET_ZONE, expected)


def test_what_the_api_answers_at_a_start_can_be_drawn(signed_in):
    started = signed_in.post("/auth/mfa/totp/setup/start").ok()
    assert draw(signed_in, started["otpauth_uri"]).status == 200


def test_the_drawing_is_a_picture_that_nobody_keeps(api):
    answer = draw(api)
    assert answer.headers["Content-Type"] == "image/svg+xml"
    assert answer.headers.getlist("Cache-Control") == ["no-store"]
    assert answer.headers["Content-Security-Policy"] == CONTENT_SECURITY_POLICY
    assert "ETag" not in answer.headers
    assert "Set-Cookie" not in answer.headers


def test_nothing_of_the_link_is_in_the_drawing_as_text_or_in_the_log(api, caplog):
    caplog.set_level(logging.DEBUG)
    body = draw(api).text
    draw(api, f"https://example.com/{SECRET}").fails(400, "bad_request")
    assert caplog.records
    for text in (body, caplog.text):
        assert not [part for part in (SECRET, "ada", "Gatehouse", "otpauth:") if part in text]


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "otpauth://",
        "https://example.com/",
        "otpauth:totp",
        f" {URI}",
        f"{URI} ",
        f"{URI}\n",
        f"{URI}\nhttps://example.com/",
        f"x{URI}",
        "OTPAUTH://totp/a?secret=JBSWY3DP",
        "otpauth://totp/Grüße?secret=JBSWY3DP",
        "otpauth://totp/a?secret=JBSWY3DP\x00",
        "javascript:otpauth://",
        f"{LONGEST}x",
        None,
        7,
        [URI],
    ],
)
def test_only_a_link_for_an_authenticator_app_is_drawn(api, uri):
    answer = draw(api, uri).fails(400, "bad_request")
    assert "otpauth_uri" in answer.json["msg"]
    assert SECRET not in answer.json["msg"]


def test_a_body_that_is_none_is_refused(api):
    api.post(PATH, {}).fails(400, "bad_request")
    api.post(PATH, b"otpauth://totp/a").fails(400, "bad_request")
    api.post(PATH).fails(400, "bad_request")
    api.post(PATH, b" " * (JSON_BODY_LIMIT + 1)).fails(413, "file.too_large")


def test_it_cannot_be_had_by_an_address(api):
    """Which would be kept in histories and logs, with the secret."""
    api.get(f"{PATH}?otpauth_uri=otpauth://totp/a").fails(405, "endpoint.not_found")


def test_an_address_draws_no_more_than_it_may_sign_in(make_app):
    api = ApiClient(make_app(anonymous_bucket=Bucket(per_second=0.02, burst=2)))
    assert [draw(api).status for _ in range(2)] == [200, 200]
    draw(api).fails(429, "rate_limited")


def test_the_thread_of_the_request_does_not_draw(api, monkeypatch):
    threads = []

    def make_qr(*arguments, **options):
        threads.append(threading.get_ident())
        return make(*arguments, **options)

    make = segno.make_qr
    monkeypatch.setattr(segno, "make_qr", make_qr)
    assert draw(api).status == 200
    assert len(threads) == 1
    assert threads != [threading.get_ident()]


def test_drawings_that_nobody_gets_to_soon_are_refused(api, monkeypatch):
    monkeypatch.setattr(reference, "_drawing", ThreadPool(1, max_queued=-1))
    assert draw(api).fails(503, "internal_server_error").retry_after >= 1
