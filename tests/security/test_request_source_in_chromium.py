"""The request-security matrix in a real browser: pages of others change nothing.

Every operation that changes something is attacked from a page of another site, and from one of
this site at another port, whose requests carry the cookies. Nothing may have happened afterwards,
and what reached the service must have been refused.
"""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import sqlalchemy as sa
from playwright.sync_api import Browser, BrowserContext, Page, Response

from app.audit.models import AuditEntry
from app.sessions.models import LoginSession
from app.users.models import User
from app.web import origin
from tests.support.browser import needs_chromium
from tests.support.factories import KnownUser, make_user
from tests.support.live import LiveService

# Not a matter of databases.
pytestmark = [*needs_chromium, pytest.mark.postgres]

EMAIL_START = "/api/v1/auth/external-auth/email-verification/start"
SAFE = {"GET", "HEAD", "OPTIONS"}
REFUSALS = {error.code.value for error in (*origin.SOURCE_ERRORS, *origin.CSRF_ERRORS)}
# Or the browser kept the cookies back, and so nobody is signed in.
TURNED_AWAY = REFUSALS | {"auth.token_missing"}
# These look at the body first, and a form cannot send one that is right.
BODY_FIRST = ("/api/v1/auth/external-auth/1/1/start", EMAIL_START)
# They make no difference to anybody who is signed in.
UNCHECKED = {"/api/v1/auth/check", "/api/v1/auth/setup"}
LOGOUT = "/api/v1/auth/logout"

# Each returns [method, path, status or what the browser said, code] for every request.
FETCH = """async ([base, requests, options, headers, body]) => {
    const said = [];
    for (const [method, path] of requests) {
        const sent = method === "GET" ? undefined : body;
        try {
            const answer = await fetch(base + path, {method, headers, body: sent, ...options});
            const isJson = answer.headers.get("Content-Type") === "application/json";
            said.push([method, path, answer.status, isJson ? (await answer.json()).code : null]);
        } catch (error) {
            said.push([method, path, error.name, null]);
        }
    }
    return said;
}"""
FORM = """([action, enctype, fields]) => {
    const form = document.createElement("form");
    Object.assign(form, {method: "POST", action, enctype, target: "theirs"});
    for (const [name, value] of Object.entries(fields)) {
        const field = document.createElement("input");
        Object.assign(field, {type: "hidden", name, value});
        form.append(field);
    }
    document.body.append(form);
    form.submit();
}"""


class Blank(BaseHTTPRequestHandler):
    """Any page of a site that means harm."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def foreign_port() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Blank) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def others(foreign_port: int) -> dict[str, str]:
    """Origins of others by how the browser calls them; `localhost` is where the service is."""
    return {
        "cross-site": f"http://127.0.0.1:{foreign_port}",
        "same-site": f"http://localhost:{foreign_port}",
    }


@dataclass
class Victim:
    """A browser in which somebody is signed in, and the service they use."""

    service: LiveService
    context: BrowserContext
    user: KnownUser

    @property
    def site(self) -> str:
        return f"http://localhost:{self.service.port}"

    def visit(self, site: str) -> Page:
        """Open a page of `site` in another tab."""
        page = self.context.new_page()
        page.goto(f"{site}/health")
        return page

    def fetch(
        self,
        page: Page,
        requests: list[tuple[str, str]],
        body: str | None = "{}",
        headers: dict[str, str] | None = None,
        **options: str,
    ) -> list[list[Any]]:
        """Have a page send these requests one after the other."""
        arguments = [self.site, [list(one) for one in requests], options, headers or {}, body]
        said: list[list[Any]] = page.evaluate(FETCH, arguments)
        return said

    def jar(self) -> dict[str, str]:
        return {cookie["name"]: cookie["value"] for cookie in self.context.cookies(self.everywhere)}

    @property
    def everywhere(self) -> str:
        """An address that all cookies are for."""
        return f"{self.site}/api/v1/auth/me"

    def state(self) -> list[Any]:
        """Return all that an attack might change."""
        tables = (User.__table__, LoginSession.__table__, AuditEntry.__table__)
        with self.service.rt.reading() as connection:
            rows = [connection.execute(sa.select(t).order_by(t.c.id)).all() for t in tables]
        return [*rows, self.jar()]


@pytest.fixture
def victim(chromium: Browser, direct: LiveService) -> Iterator[Victim]:
    make_user(direct.rt, username="root", role="admin")
    context = chromium.new_context()
    context.set_default_timeout(60_000)
    victim = Victim(direct, context, make_user(direct.rt, role="admin"))
    page = victim.visit(victim.site)
    body = {"identifier": victim.user.username, "password": victim.user.password}
    json_body = {"Content-Type": "application/json"}
    login = [("POST", "/api/v1/auth/login")]
    [said] = victim.fetch(page, login, json.dumps(body), json_body)
    assert said[2:] == [200, "success"]
    page.close()
    assert set(victim.jar()) == {
        "service_access",
        "service_refresh",
        "service_csrf",
        "service_device",
    }
    yield victim
    context.close()


@pytest.fixture
def operations(direct: LiveService) -> dict[tuple[str, str], list[set[str]]]:
    """Every operation that changes something, with the schemes that open it, and logout last."""
    with direct.client() as client:
        paths = client.get("/api/v1/openapi.json").json["paths"]
    found = {
        (method.upper(), re.sub(r"\{\w+\}", "1", path)): [set(way) for way in its["security"]]
        for path, methods in sorted(paths.items(), key=lambda item: item[0] == LOGOUT)
        for method, its in methods.items()
        if method.upper() not in SAFE and path not in UNCHECKED
    }
    assert len(found) > 30
    return found


@pytest.fixture
def changes(operations: dict[tuple[str, str], list[set[str]]]) -> list[tuple[str, str]]:
    return list(operations)


@contextmanager
def statuses(page: Page, victim: Victim) -> Iterator[dict[str, int]]:
    """Yield the statuses of the service's answers to `page` by path, preflights left out."""
    found: dict[str, int] = {}

    def note(response: Response) -> None:
        if response.url.startswith(victim.site) and response.request.method != "OPTIONS":
            found[response.url.removeprefix(victim.site)] = response.status

    page.on("response", note)
    yield found
    page.remove_listener("response", note)


# --- this site's own pages ---------------------------------------------------------------------


def test_this_sites_own_page_may_do_everything(victim, changes):
    page = victim.visit(victim.site)
    for request in changes:
        headers = {"Content-Type": "application/json"}
        if token := victim.jar().get("service_csrf"):
            headers["X-CSRF-Token"] = token
        [[*_, status, code]] = victim.fetch(page, [request], headers=headers)
        assert isinstance(status, int), request
        assert code not in REFUSALS, (request, code)
    # The others ended with the logout.
    assert victim.jar().keys() == {"service_browser", "service_device"}


def test_without_the_token_its_page_may_change_nothing_of_the_session(victim, operations):
    by_cookie = {"accessCookie", "csrfToken"}
    guarded = [name for name, ways in operations.items() if any(by_cookie <= way for way in ways)]
    assert len(guarded) > 15
    before = victim.state()
    said = victim.fetch(victim.visit(victim.site), guarded)
    assert {(status, code) for *_, status, code in said} == {(403, "auth.csrf_header_missing")}
    assert victim.state() == before


# --- pages of others ---------------------------------------------------------------------------


@pytest.mark.parametrize("other", ["cross-site", "same-site"])
def test_a_form_of_others_changes_nothing(victim, changes, others, other):
    fields = {"flow_token": "x", "identifier": victim.user.username, "display_name": "Mallory"}
    before = victim.state()
    page = victim.visit(others[other])
    with page.expect_popup() as opened:
        page.evaluate("() => { window.open('about:blank', 'theirs'); }")
    window = opened.value
    for method, path in changes:
        if method != "POST":
            continue  # a form cannot send it
        enctype = "multipart/form-data" if path.endswith("/upload") else "text/plain"
        with window.expect_navigation(url=victim.site + path) as navigation:
            page.evaluate(FORM, [victim.site + path, enctype, fields])
        answer = navigation.value
        if path == LOGOUT and other == "cross-site":
            # The cookies did not come along, so nobody is signed out; nor are they taken away.
            assert answer.status == 200
        elif path not in BODY_FIRST:
            assert answer.json()["code"] in TURNED_AWAY, path
        assert victim.state() == before, path


@pytest.mark.parametrize("other", ["cross-site", "same-site"])
def test_a_request_of_others_changes_nothing_and_reads_nothing(victim, changes, others, other):
    posts = [request for request in changes if request[0] == "POST"]
    before = victim.state()
    page = victim.visit(others[other])
    for credentials in ("include", "omit"):
        with statuses(page, victim) as reached:
            said = victim.fetch(page, posts, mode="no-cors", credentials=credentials)
        has_cookies = other == "same-site" and credentials == "include"
        assert set(reached) == {path for _, path in posts}
        allowed = {LOGOUT: 403 if has_cookies else 200} | dict.fromkeys(BODY_FIRST, 400)
        for path, status in reached.items():
            assert status == allowed.get(path, status if status in {401, 403} else None), path
        # Whatever the service answers, the page cannot read it.
        assert {tuple(one[2:]) for one in said} == {(0, None)}
        said = victim.fetch(page, posts, mode="cors", credentials=credentials)
        assert {tuple(one[2:]) for one in said} == {("TypeError", None)}
        assert victim.state() == before, credentials
    # What a form cannot send is not even sent.
    with statuses(page, victim) as reached:
        for headers in ({"Content-Type": "application/json"}, {"X-CSRF-Token": "x"}):
            said = victim.fetch(page, changes, headers=headers, credentials="include")
            assert {status for *_, status, _code in said} == {"TypeError"}
    assert reached == {}
    assert victim.state() == before
    reads = [("GET", f"/api/v1/auth/{name}") for name in ("me", "sessions", "mfa", "passkeys")]
    said = victim.fetch(page, reads, credentials="include")
    assert {status for *_, status, _code in said} == {"TypeError"}


# --- frames ------------------------------------------------------------------------------------

DOCS = "/api/v1/docs"
FRAME = """async (address) => {
    const frame = document.createElement("iframe");
    frame.src = address;
    const loaded = new Promise((done) => frame.addEventListener("load", done));
    document.body.append(frame);
    await loaded;
    try { return frame.contentDocument === null ? "closed" : frame.contentDocument.title; }
    catch (error) { return error.name; }
}"""


def test_only_this_sites_own_pages_may_frame_it(victim, others):
    own = victim.visit(victim.site)
    assert own.evaluate(FRAME, victim.site + DOCS).startswith("Gatehouse")
    for other in others.values():
        page = victim.visit(other)
        page.evaluate(FRAME, victim.site + DOCS)
        framed = page.locator("iframe").element_handle().content_frame()
        assert framed is not None
        # Chromium shows its own page in place of what must not be framed.
        assert "Gatehouse" not in framed.content()
        assert framed.url.startswith("chrome-error:")


def test_a_sandboxed_page_without_an_origin_changes_nothing(victim, changes, others):
    """Even on this site's own page: what is put into a sandbox there is not ours."""
    before = victim.state()
    posts = [request for request in changes if request[0] == "POST"]
    for where in (victim.site, *others.values()):
        page = victim.visit(where)
        page.evaluate(
            """() => {
                const frame = document.createElement("iframe");
                Object.assign(frame, {sandbox: "allow-scripts allow-forms"});
                frame.srcdoc = "<p>boxed</p>";
                const loaded = new Promise((done) => frame.addEventListener("load", done));
                document.body.append(frame);
                return loaded;
            }"""
        )
        boxed = page.locator("iframe").element_handle().content_frame()
        assert boxed is not None
        assert boxed.evaluate("self.origin") == "null"
        with statuses(page, victim) as reached:
            victim.fetch(boxed, posts, mode="no-cors", credentials="include")
        assert set(reached) == {path for _, path in posts}, where
        assert reached.pop(LOGOUT) in {200, 403}
        assert {reached.pop(path) for path in BODY_FIRST} == {400}
        assert set(reached.values()) <= {401, 403}, where
        said = victim.fetch(boxed, posts, mode="cors", credentials="include")
        assert {status for *_, status, _code in said} == {"TypeError"}
        assert victim.state() == before, where
