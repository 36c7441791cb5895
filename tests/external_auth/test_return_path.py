"""Paths to return to: 50 tricks that would lead elsewhere, and paths that are fine."""

from urllib.parse import urljoin, urlsplit

import pytest

from app.external_auth.errors import ReturnPathInvalid
from app.external_auth.sign_in.service import checked_path
from tests.support.external import link, location, sign_in

TRICKS = [
    "https://evil.example",
    "http://evil.example/",
    "HTTPS://evil.example",
    "https:evil.example",
    "https:/evil.example",
    "https:\\\\evil.example",
    "//evil.example",
    "///evil.example",
    "////evil.example/",
    "//evil.example:443/",
    "//user@evil.example",
    "//localhost@evil.example",
    "//[::1]",
    "//%65vil.example",
    "  //evil.example",
    "\t//evil.example",
    "\u00a0//evil.example",
    "\n//evil.example",
    "\\\\evil.example",
    "\\/evil.example",
    "/\\evil.example",
    "/\\/evil.example",
    "/\\\\evil.example",
    "/files\\..\\\\evil.example",
    "/\t/evil.example",
    "/\n/evil.example",
    "/\r/evil.example",
    "/\r\n/evil.example",
    "/\x00/evil.example",
    "/\x0b/evil.example",
    "/\x0c/evil.example",
    "/\x1f/evil.example",
    "/\x7f/evil.example",
    "/\x85/evil.example",
    "/\u2028/evil.example",
    "/\u2029/evil.example",
    "/files\r\nLocation: https://evil.example",
    "/files\r\n\r\n<script>alert(1)</script>",
    "/files\nSet-Cookie: service_access=evil",
    "javascript:alert(1)",
    "JavaScript:alert(1)",
    "java\tscript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "vbscript:msgbox",
    "blob:https://evil.example/1",
    "mailto:evil@evil.example",
    "evil.example",
    "evil.example/files",
    ".evil.example",
    "@evil.example",
    ":80/",
    "?next=https://evil.example",
    "#//evil.example",
    "..//evil.example",
    "./evil",
    "\ufeff//evil.example",
    "\uff052F\uff052Fevil.example",
    "\uff0f\uff0fevil.example",
    "\u2044\u2044evil.example",
    "/" + "x" * 2048,
    "/" + "ü" * 1024,
]
# Odd, but paths of this site all the same.
FINE = [
    "/",
    "/files?folder=7&sort=name",
    "/setup/storage?external_auth=success",
    "/a//b",
    "/.//evil.example",
    "/..//evil.example",
    "/%2f%2fevil.example",
    "/%5cevil.example",
    "/\uff0fevil.example",
    "/@evil.example",
    "/:80",
    "/redirect?to=https://evil.example",
    "/#//evil.example",
    "/;@evil.example",
    "/Grüße aus Köln",
    "/😀",
    "/" + "x" * 2047,
]


@pytest.mark.parametrize("trick", TRICKS)
def test_a_trick_is_refused(trick):
    with pytest.raises(ReturnPathInvalid):
        checked_path(trick)


def test_a_path_is_taken_and_stays_on_this_site():
    for path in FINE:
        assert checked_path(path) == path
        for base in ("https://files.example", "https://files.example/api/v1/auth/x/callback"):
            assert urlsplit(urljoin(base, path)).netloc == "files.example", path


def test_nothing_leads_home_and_space_around_a_path_is_dropped():
    assert {checked_path(blank) for blank in (None, "", "   ", "\t\n")} == {"/"}
    assert checked_path("  /files ") == "/files"


def test_no_trick_gets_past_start(api, rt, corp):
    body = {"return_path": "//evil.example"}
    answer = api.post("/auth/external-auth/oidc/corp/start", body)
    answer.fails(400, "bad_request")
    assert answer.set_cookies == {}
    assert rt.redis.client.keys("gatehouse:external-sign-in:*") == []


def test_the_browser_is_sent_to_the_path_as_it_was_given(rt, api, user, fake, corp):
    link(rt, user, corp, subject="248289761001", identity_namespace=fake.issuer)
    for path, sent in (
        ("/files?folder=7&sort=name#end", "/files?folder=7&sort=name#end"),
        ("/.//evil.example", "/.//evil.example"),
        ("/100%", "/100%"),
        ("/Grüße aus", "/Gr%C3%BC%C3%9Fe%20aus"),
        ("/😀", "/%F0%9F%98%80"),
    ):
        assert location(sign_in(api, fake, return_path=path)) == sent
