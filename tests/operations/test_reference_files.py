"""The reference page's files: own ones only, cached as they deserve, under a strict policy."""

import re

import pytest

from app.operations.reference import STATIC, SWAGGER_UI_VERSION

DOCS = "/api/v1/docs"
LINKS = re.compile(r'(?:href|src)="(docs/[^"]+)"')


@pytest.fixture
def page(api):
    return api.get(DOCS)


def directives(answer):
    policy = answer.headers["Content-Security-Policy"]
    return dict(part.split(" ", 1) for part in policy.split("; "))


def test_the_page_runs_scripts_from_files_of_this_service_only(page):
    assert directives(page)["script-src"] == "'self'"
    assert directives(page)["connect-src"] == "'self'"
    assert directives(page)["frame-ancestors"] == "'self'"
    html = page.body.decode()
    assert re.findall(r"<script(?![^>]* src=)", html) == []
    assert re.findall(r'(?:href|src)="(?:https?:)?//', html) == []


def test_every_file_the_page_names_is_there(api, page):
    links = LINKS.findall(page.body.decode())
    assert len(links) == 5
    for link in links:
        answer = api.get(f"/api/v1/{link}")
        assert answer.status == 200, link
        assert answer.headers["Content-Security-Policy"] == page.headers["Content-Security-Policy"]


def test_every_file_is_one_that_the_page_names(page):
    named = {link.rpartition("/")[2] for link in LINKS.findall(page.body.decode())}
    assert {file.name for file in STATIC.rglob("*")} <= named


def test_own_files_are_revalidated(api):
    first = api.get(f"{DOCS}/assets/reference.js")
    assert first.headers["Cache-Control"] == "no-cache"
    assert "javascript" in first.headers["Content-Type"]
    headers = {"If-None-Match": first.headers["ETag"]}
    assert api.get(f"{DOCS}/assets/reference.js", headers=headers).status == 304


def test_swagger_ui_is_kept_for_a_year_under_its_version(api):
    answer = api.get(f"{DOCS}/swagger-ui/{SWAGGER_UI_VERSION}/swagger-ui.css")
    assert "max-age=31536000" in answer.headers["Cache-Control"]
    assert "immutable" in answer.headers["Cache-Control"]


@pytest.mark.parametrize(
    "path",
    [
        "/assets/nothing.js",
        "/assets/../views.py",
        "/assets/%2e%2e/views.py",
        "/assets/base/api.js",
        f"/swagger-ui/{SWAGGER_UI_VERSION}/LICENSE",
        "/swagger-ui/0.0.0/swagger-ui.css",
    ],
)
def test_nothing_else_is_served(api, path):
    api.get(DOCS + path).fails(404, "endpoint.not_found")


def test_a_trailing_slash_leads_to_the_page(api):
    answer = api.get(f"{DOCS}/")
    assert (answer.status, answer.headers["Location"]) == (308, "../docs")


@pytest.mark.parametrize(
    "path",
    [
        *("/api/v1//docs", "//api/v1/docs", "///api/v1/auth/me", "//health", "/api//v1/docs/"),
        *("api/v1/auth/me", "*", ""),
    ],
)
def test_a_doubled_slash_is_another_address_and_no_redirect(signed_in, path):
    """A redirect would name a host, which a proxy may know better."""
    answer = signed_in.get("/nowhere", environ_overrides={"PATH_INFO": path})
    answer.fails(404, "endpoint.not_found")
    assert "Location" not in answer.headers
    assert answer.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("header", ["If-Modified-Since", "If-Unmodified-Since", "If-Range"])
@pytest.mark.parametrize(
    "date",
    [
        "Mon, 01 Jan 99999 00:00:00 GMT",
        "Mon, 01 Jan 0000 00:00:00 GMT",
        "Mon, 01 Jan 0001 00:00:00 +2359",
        "Fri, 31 Dec 9999 23:59:59 -2359",
        "Mon, 01 Jan 2026 00:00:00 +99999999999",
        "Mon, 99 Jan 2026 99:99:99 GMT",
        "-1",
        "nonsense",
    ],
)
def test_a_date_that_no_calendar_has_is_no_failure(api, header, date):
    answer = api.get(f"{DOCS}/assets/reference.css", headers={header: date}, described=False)
    assert answer.status in {200, 304, 400, 412}
