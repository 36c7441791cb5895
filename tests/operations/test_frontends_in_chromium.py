"""What frontends begin with, in a browser: the module of docs/integration.md, the typed client."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Request, Route, expect

from tests.support import npm, typescript
from tests.support.browser import needs_chromium
from tests.support.launcher import Service
from tests.support.servers import ROOT

pytestmark = needs_chromium

SCRIPT = re.compile(r"^```js\n(.*?)^```", re.MULTILINE | re.DOTALL)
ACCESS = "service_access"
PASSWORD = "a first password"
SECONDS = 300

# Each page answers with a name, or the code of a refusal.
ON_THE_MODULE = """
  import { call, listen, logOut, meanFor, refresh } from "/pages/module.js";
  const told = (answer) => answer.then((data) => data?.username ?? "done", (error) => error.code);
  window.signIn = (body) => told(call("/auth/login", "POST", body));
  window.whoAmI = () => told(call("/auth/me"));
  window.rename = (body) => told(call("/auth/profile", "PATCH", body));
  window.refresh = refresh;
  window.meanFor = meanFor;
  window.logOut = () => told(logOut());
  window.heard = [];
  window.listen = () => listen({
    onEvent: ({ kind }) => window.heard.push(kind),
    reload: () => window.heard.push("reload"),
    onSignedOut: ({ code }) => window.heard.push(code),
  });
"""
ON_THE_CLIENT = """
  import { gatehouse } from "/pages/client.js";
  const api = gatehouse();
  const told = (answer) =>
    answer.then(({ data, error }) => (error ? error.code : (data.data?.username ?? "done")));
  window.signIn = (body) => told(api.POST("/api/v1/auth/login", { body }));
  window.whoAmI = () => told(api.GET("/api/v1/auth/me"));
  window.rename = (body) => told(api.PATCH("/api/v1/auth/profile", { body }));
  window.refresh = () => api.refresh();
  window.meanFor = api.meanFor;
  window.logOut = () => told(api.logOut());
  window.administration = await import("/pages/administration.js");
"""


def module(_: Path) -> dict[str, str]:
    """The blocks of docs/integration.md, one after the other, as one file."""
    blocks = SCRIPT.findall((ROOT / "docs" / "integration.md").read_text())
    return {"module.js": "\n".join(blocks), "index.html": page_with(ON_THE_MODULE)}


def client(folder: Path) -> dict[str, str]:
    """The typed client, compiled without its types, which leave nothing behind."""
    try:
        packages = typescript.lay_out(folder)
    except npm.Missing as reason:
        pytest.skip(f"no TypeScript: {reason}")
    compiler = packages / "typescript" / "bin" / "tsc"
    command = ["node", str(compiler), "--noEmit", "false", "--noCheck"]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done.stdout
    return {
        "client.js": (folder / "client.js").read_text(),
        "administration.js": (folder / "administration.js").read_text(),
        "openapi-fetch.js": (packages / "openapi-fetch" / "dist" / "index.mjs").read_text(),
        "index.html": page_with(ON_THE_CLIENT),
    }


def page_with(script: str) -> str:
    imports = '{"imports": {"openapi-fetch": "/pages/openapi-fetch.js"}}'
    return f"""<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,">
<script type="importmap">{imports}</script>
<script type="module">{script}  document.title = "ready";</script>"""


class Site:
    """A browser in front of the service, whose pages are ours."""

    def __init__(self, context: BrowserContext, origin: str, files: dict[str, str]) -> None:
        self.context = context
        self.origin = origin
        self.files = files
        self.requests: list[str] = []
        context.route(f"{origin}/pages/*", self._page)
        context.on("request", self._note)

    def _page(self, route: Route) -> None:
        name = route.request.url.rpartition("/")[2]
        kind = "text/html" if name.endswith(".html") else "text/javascript"
        route.fulfill(body=self.files[name], content_type=kind)

    def _note(self, request: Request) -> None:
        self.requests.append(request.url.removeprefix(f"{self.origin}/api/v1"))

    def tab(self) -> Page:
        page = self.context.new_page()
        page.goto(f"{self.origin}/pages/index.html")
        expect(page).to_have_title("ready")
        return page

    def let_access_expire(self) -> None:
        """Take away what the browser drops when the access token's time is over."""
        self.context.clear_cookies(name=ACCESS)

    def cookies(self) -> set[str]:
        return {str(cookie.get("name")) for cookie in self.context.cookies()}


@pytest.fixture(scope="module", params=[module, client], ids=lambda make: make.__name__)
def files(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str]:
    made: dict[str, str] = request.param(tmp_path_factory.mktemp("frontend"))
    return made


@pytest.fixture
def site(chromium: Browser, service: Service, origin: str, files: dict[str, str]) -> Iterator[Site]:
    service.flask(
        *("users", "create", "--username", "ada", "--email", "ada@example.com"),
        *("--role", "admin", "--password", PASSWORD),
    )
    service.flask("config", "set", "public_site_url", f'["{origin}"]')
    context = chromium.new_context()
    yield Site(context, origin, files)
    context.close()


@pytest.fixture
def tab(site: Site) -> Page:
    """A page that is signed in."""
    page = site.tab()
    assert page.evaluate("signIn", {"identifier": "ada", "password": PASSWORD}) == "done"
    return page


def test_a_session_goes_on_when_its_access_token_has_expired(site: Site) -> None:
    page = site.tab()
    wrong = {"identifier": "ada", "password": "not this one"}
    assert page.evaluate("signIn", wrong) == "auth.credentials_failed"
    assert "/auth/refresh" not in site.requests
    assert page.evaluate("signIn", wrong | {"password": PASSWORD}) == "done"
    assert page.evaluate("whoAmI()") == "ada"
    # A change goes on when the access token has expired.
    site.let_access_expire()
    assert page.evaluate("rename", {"display_name": "Ada Lovelace"}) == "done"
    assert site.requests.count("/auth/refresh") == 1
    assert site.requests.count("/auth/profile") == 2


def test_two_tabs_refresh_once(site: Site, tab: Page) -> None:
    other = site.tab()
    site.let_access_expire()
    for page in (tab, other):
        page.evaluate("window.answers = Promise.all([whoAmI(), whoAmI(), whoAmI()]); 0")
    for page in (tab, other):
        assert page.evaluate("window.answers") == ["ada"] * 3
    assert site.requests.count("/auth/refresh") == 1


def test_who_has_no_session_any_more_is_told_so_once_and_logs_out(
    site: Site, tab: Page, service: Service
) -> None:
    service.flask("users", "revoke-sessions", "ada")
    assert tab.evaluate("whoAmI()") == "auth.token_invalid"
    assert tab.evaluate("refresh()") is False
    assert site.requests.count("/auth/me") == 1
    assert ACCESS in site.cookies()
    assert tab.evaluate("logOut()") == "done"
    assert site.cookies() == {"service_device"}  # the browser stays known
    assert tab.evaluate("whoAmI()") == "auth.token_missing"


def test_what_one_page_changes_is_not_changed_for_who_signed_in_on_another(
    site: Site, tab: Page, service: Service
) -> None:
    service.flask(
        *("users", "create", "--username", "zoe", "--email", "zoe@example.com"),
        *("--password", PASSWORD),
    )
    me = tab.evaluate("fetch('/api/v1/auth/me').then((answer) => answer.json())")
    tab.evaluate("meanFor", me["data"]["id"])
    assert tab.evaluate("rename", {"display_name": "Ada"}) == "done"
    zoe = {"identifier": "zoe", "password": PASSWORD}
    assert site.tab().evaluate("signIn", zoe) == "done"
    mismatch = "auth.session_user_mismatch"
    assert tab.evaluate("rename", {"display_name": "Ada Lovelace"}) == mismatch
    site.let_access_expire()
    assert tab.evaluate("rename", {"display_name": "Ada Lovelace"}) == mismatch


@pytest.mark.parametrize("files", [client], indirect=True, ids=["client"])
def test_an_administrators_page_manages_accounts(tab: Page) -> None:
    assert tab.evaluate("administration.exported()") == ["ada", 1]
    bob = tab.evaluate("administration.add", {"username": "bob", "email": "bob@example.com"})
    assert tab.evaluate("administration.find", "bob") == [bob]
    assert tab.evaluate("administration.lock", bob) == "disabled"
    assert tab.evaluate("administration.remove", bob) is None
    assert tab.evaluate("administration.find", "bob") == []
    assert tab.evaluate("administration.remove", bob) == "not_found"


@pytest.mark.parametrize("files", [module], indirect=True, ids=["module"])
def test_a_stream_is_heard_until_its_session_ends(site: Site, tab: Page, service: Service) -> None:
    tab.evaluate("window.stop = listen(); 0")
    tab.wait_for_function("heard.length === 1")
    service.flask("events", "publish", "--user", "ada", "--kind", "file.created", "--file-id", "7")
    tab.wait_for_function("heard.length === 2")
    service.flask("users", "revoke-sessions", "ada")
    tab.wait_for_function("heard.length === 3")
    assert tab.evaluate("heard") == ["reload", "file.created", "auth.token_invalid"]
    assert site.requests.count("/auth/events/storage") == 1
