"""Drives the built-in pages in the system's Chromium."""

import json
import re
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import sqlalchemy as sa
from playwright.sync_api import Browser, Locator, Page, expect

from app.core.runtime import Runtime
from app.sessions.models import LoginSession
from app.users.models import User
from tests.support import factories, npm
from tests.support.browser import Complaints
from tests.support.factories import KnownUser
from tests.support.fake_provider import CLIENT_ID, CLIENT_SECRET, FakeProvider
from tests.support.launcher import Service, eventually
from tests.support.leaks import watch
from tests.support.mailbox import Mailbox, text_of

# Collects what the Content Security Policy stops, and gives tests the page's own base modules.
BEFORE_ALL_SCRIPTS = """
window.policyReports = [];
window.module = (name) => {
  const [known] = document.querySelector("link[rel=modulepreload]").href.match(/.*pages.\\w+/);
  return import(`${known}/base/${name}.js`);
};
document.addEventListener("securitypolicyviolation", ({ violatedDirective, blockedURI }) =>
  window.policyReports.push(`${violatedDirective} ${blockedURI}`));
"""


AXE = Path(__file__).parent / "axe"
# In a mail, the link that somebody has asked for.
OPENS = re.compile(r"[?&]token=|/invite/")
SMALL = {"width": 320, "height": 640}
# The levels A and AA of WCAG 2.2, and what else makes a page hard to use.
AXE_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


class Site:
    """The running service as the pages' tests see it."""

    def __init__(self, service: Service, rt: Runtime) -> None:
        self.rt = rt
        self.flask = service.flask
        self.mailbox = Mailbox(service.instance / "mail")
        self.mailbox.read()  # those of earlier tests
        self.origin = f"http://localhost:{service.port}"
        self.numeric_origin = service.url
        self.ada = factories.make_user(rt, username="ada", role="admin")
        self.configure(public_site_url=[self.origin])

    def configure(self, **values: Any) -> None:
        """Change settings; the service follows within a second, or when `follows` returns."""
        factories.configure(self.rt, **values)

    def follows(self, words: str, *, is_there: bool = True) -> None:
        """Wait until the sign-in page has, or has not, what a change of settings was to change."""
        eventually(lambda: (words in self._sign_in_page()) is is_there, f"{words}: {is_there}")

    def _sign_in_page(self) -> str:
        with urllib.request.urlopen(f"{self.numeric_origin}/login", timeout=30) as answer:
            return str(answer.read(), "utf-8")

    def add(self, username: str, **columns: Any) -> KnownUser:
        """Add an account."""
        return factories.make_user(self.rt, username=username, **columns)

    def change(self, user: KnownUser, **columns: Any) -> None:
        """Change columns of an account."""
        with self.rt.transaction() as session:
            session.execute(sa.update(User).where(User.id == user.id).values(**columns))

    def mailed(self) -> str:
        """Wait for a mail with a link that opens something; return its path and query."""
        [mail] = eventually(
            lambda: [mail for mail in self.mailbox.read() if OPENS.search(text_of(mail))], "a mail"
        )
        watch.note(self.mailbox.token(mail))
        link = urlsplit(self.mailbox.link(mail))
        return f"{link.path}?{link.query}" if link.query else link.path

    def post(self, path: str, body: dict[str, Any]) -> Any:
        """Send JSON as a page of the site would; return the data of the answer."""
        headers = {"Content-Type": "application/json", "Origin": self.origin}
        data = json.dumps(body).encode()
        request = urllib.request.Request(f"{self.origin}/api/v1{path}", data, headers)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)["data"]


def add_local_provider(site: Site, provider: FakeProvider) -> None:
    """Let people sign in by `provider`, as `Local login`."""
    words = ["external-auth", "add", "oidc", "--key", "local", "--name", "Local login"]
    words += ["--client-id", CLIENT_ID, f"--client-secret={CLIENT_SECRET}"]
    site.flask(*words, "--issuer-url", provider.issuer)


def let_time_pass(site: Site) -> None:
    """Make every sign-in an hour older."""
    long_ago = site.rt.clock.now() - timedelta(hours=1)
    with site.rt.transaction() as session:
        session.execute(sa.update(LoginSession).values(confirmed_at=long_ago))


@contextmanager
def opened(
    browser: Browser, origin: str, complaints: Complaints, *others: str, **options: Any
) -> Iterator[Page]:
    """Open a new browser profile, with `options` of Playwright's contexts; nobody is signed in.

    Afterwards nothing may have been complained of: no console errors, no policy violations, and no
    requests to hosts but `origin` and `others`. Whatever axe should have looked at and could not is
    skipped at the end.
    """
    hosts: set[str] = set()
    known = {"base_url": origin, "reduced_motion": "reduce"}
    with closing(browser.new_context(**known | options)) as context:
        context.add_init_script(BEFORE_ALL_SCRIPTS)
        page = context.new_page()
        page.on("console", complaints.note)
        page.on("pageerror", lambda error: complaints.texts.append(str(error)))
        page.on("request", lambda request: hosts.add(urlsplit(request.url).netloc))
        yield page
        if page.url.startswith("http"):
            assert page.evaluate("window.policyReports") == []
        assert complaints.texts == []
        assert hosts - {""} <= {urlsplit(known).netloc for known in (origin, *others)}
    if _WITHOUT_AXE:
        reasons = set(_WITHOUT_AXE)
        _WITHOUT_AXE.clear()
        pytest.skip(f"nothing else failed, but there is no axe-core: {', '.join(reasons)}")


# Why axe looked at nothing since the last profile was closed.
_WITHOUT_AXE: list[str] = []


def answered(
    page: Page, pattern: str, status: int, code: str, data: object = None, **headers: str
) -> None:
    """Answer a call in the service's place."""
    msg = "" if code == "success" else "No."
    body = json.dumps({"code": code, "msg": msg, "data": data, "error": None})
    headers |= {"Content-Type": "application/json"}
    page.route(pattern, lambda route: route.fulfill(status=status, body=body, headers=headers))


def fill(page: Page, **values: str) -> None:
    """Fill in the fields of these names."""
    for name, value in values.items():
        page.locator(f"[name={name}]:visible").fill(value)


def send(page: Page) -> None:
    """Send the form."""
    page.locator("[type=submit]:visible").click()


def sign_in(page: Page, user: KnownUser, password: str | None = None) -> None:
    """Fill in and send the form of the sign-in page, which is open."""
    page.get_by_label("Username or e-mail").fill(user.username)
    page.get_by_label("Password", exact=True).fill(user.password if password is None else password)
    page.get_by_role("button", name="Sign in", exact=True).click()


def is_signed_in(page: Page, user: KnownUser) -> None:
    """Expect the page of the account."""
    page.wait_for_url("**/settings/profile")
    expect(page.locator("#me")).to_contain_text(user.username)
    is_drawn(page)


def sign_in_by_api(page: Page, user: KnownUser) -> None:
    """Sign in without loading a page."""
    body = {"identifier": user.username, "password": user.password}
    answer = page.context.request.post("/api/v1/auth/login", data=body)
    assert answer.ok, answer.text()


def open_as(page: Page, user: KnownUser, path: str) -> None:
    """Open a page of a console for somebody who is signed in."""
    sign_in_by_api(page, user)
    page.goto(path)
    expect(page.locator("#me")).to_contain_text(user.username)


def demand_confirmation(page: Page, site: Site, seconds: int = 60) -> None:
    """Have changes confirmed from now on by those who signed in longer ago, as the page's owner."""
    site.configure(auth_confirmation_max_age_secs=seconds)
    ways = "/auth/confirmation"
    eventually(lambda: told(page, ways)["required_for_changes"], "the service's following")
    let_time_pass(site)


def is_drawn(page: Page) -> None:
    """Expect that a page has all that it asked for at first."""
    expect(page.locator("[aria-busy=true], .skeleton")).to_have_count(0)


def is_complete(page: Page) -> None:
    """Expect that all parts of a page have arrived, and that it listens to what is done there."""
    expect(page.locator("#incomplete")).to_have_attribute("hidden", "")
    expect(page.locator("html[data-incomplete]")).to_have_count(0)


def is_ready(page: Page) -> None:
    """Expect that a page with a password field listens to what is done there."""
    expect(page.locator("[data-reveals]:visible").first).to_be_visible()


def sign_out(page: Page) -> None:
    """Sign out by the menu of a page of the account."""
    page.locator("#account-menu summary").click()
    page.get_by_role("button", name="Sign out").click()


def ask(page: Page, path: str, body: dict[str, Any] | None = None) -> Any:
    """Post to the API with the cookies of a page that is open; return the data of the answer."""
    cookies = {cookie["name"]: cookie["value"] for cookie in page.context.cookies()}
    parts = urlsplit(page.url)
    origin = f"{parts.scheme}://{parts.netloc}"
    headers = {"Origin": origin, "X-CSRF-Token": cookies.get("service_csrf", "")}
    answer = page.context.request.post(f"{origin}/api/v1{path}", data=body, headers=headers)
    assert answer.ok, answer.text()
    return answer.json()["data"]


def told(page: Page, path: str) -> dict[str, object]:
    """Return what the API says to who is signed in."""
    answer: dict[str, object] = page.evaluate(
        "(path) => fetch(`/api/v1${path}`).then((one) => one.json()).then((one) => one.data)", path
    )
    return answer


def make_passkey(page: Page) -> None:
    """Make a passkey for the account that is signed in, by the modules of the page itself."""
    page.evaluate(
        """async () => {
            const { call } = await window.module("api");
            const { createPasskey } = await window.module("webauthn");
            const post = (path, body) => call("post", `/auth/passkeys/register/${path}`, { body });
            const { flow_id, public_key } = await post("start", {});
            const credential = await createPasskey(public_key.publicKey);
            await post("finish", { flow_id, credential });
        }"""
    )


def barriers(page: Page) -> list[str]:
    """Return what axe finds to be wrong with a page; nothing if there is no axe."""
    rules = {"type": "tag", "values": AXE_RULES}
    return [*_violations(page, rules)]


def _violations(page: Page, rules: dict[str, Any]) -> Iterator[str]:
    try:
        npm.install(AXE)
    except npm.Missing as reason:
        _WITHOUT_AXE.append(str(reason))
        return
    # Those of what is replaced meanwhile are broken off.
    page.evaluate("() => Promise.allSettled(document.getAnimations().map((one) => one.finished))")
    if not page.evaluate("'axe' in window"):
        page.evaluate((AXE / "node_modules" / "axe-core" / "axe.min.js").read_text())
    found = page.evaluate(
        "(rules) => axe.run({ runOnly: rules, resultTypes: ['violations'] })", rules
    )
    for rule in found["violations"]:
        for node in rule["nodes"]:
            yield f"{rule['id']}: {node['html'][:200]} {node['failureSummary']}"


# --- looks ----------------------------------------------------------------------------------------

WITH_LONGER_WORDS = r"""
const [plain, accented] = ["AEIOUaeiouncsy", "ÅÊÎØÜåêîøüñçšÿ"];
const accent = (letter) => accented[plain.indexOf(letter)] ?? letter;
const longer = (word) => (word + word).slice(0, Math.ceil(word.length * 1.4));
const stretch = (text) => text.replace(/(\{\w+\})|([\p{L}\p{N}_]+)/gu,
  (all, kept, word) => kept ?? [...longer(word)].map(accent).join(""));
const isPlain = (text) => ![...accented].some((letter) => text.includes(letter));
const stretched = (window.stretched ??= new WeakSet());
const stretchBelow = (root) => {
  const walk = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const node = walk.currentNode;
    if (isPlain(node.data) && !stretched.has(node)) node.data = stretch(node.data);
    stretched.add(node);
  }
};
"""
# The texts of the catalogue, and those that the document itself has.
STRETCH = (
    WITH_LONGER_WORDS
    + """const ask = window.fetch;
window.fetch = async (...about) => {
  const answer = await ask(...about);
  if (!answer.url.includes("/i18n/")) return answer;
  const texts = Object.entries(await answer.json());
  return Response.json(Object.fromEntries(texts.map(([key, text]) => [key, stretch(text)])));
};
document.addEventListener("DOMContentLoaded", () => {
  stretchBelow(document.body);
  for (const { dataset } of document.querySelectorAll("[data-title]")) {
    dataset.title = stretch(dataset.title);
  }
});
"""
)
# Elements whose content is wider or higher than they are.
CLIPPED = """() => [...document.querySelectorAll("body *")].filter((node) =>
  node.checkVisibility() && getComputedStyle(node).display !== "inline" &&
  !node.closest(".visually-hidden, .skip-link, svg, .spinner, input, select") &&
  !["thead", "thead th"].some((one) => node.closest(one) &&
    getComputedStyle(node.closest(one)).clipPath !== "none") &&
  (node.scrollWidth > node.clientWidth + 1 ||
  (getComputedStyle(node).overflowY !== "visible" && node.scrollHeight > node.clientHeight + 1) ||
  node.getBoundingClientRect().right > innerWidth)).map((node) => node.outerHTML.slice(0, 200))"""


def stretch_texts(page: Page) -> None:
    """Show texts as a language has them whose words are longer by two fifths, with accents."""
    page.add_init_script(STRETCH)


# The plots are drawn anew for the size they then have.
DRAWN_AGAIN = """() => new Promise((done) =>
  requestAnimationFrame(() => requestAnimationFrame(done)))"""


def misfits(page: Page, width: int, *, zoom: int = 100) -> list[str]:
    """Return what does not fit a screen of this width, the letters being of `zoom` per cent."""
    page.set_viewport_size({"width": width, "height": 900})
    page.evaluate("(zoom) => { document.documentElement.style.fontSize = zoom; }", f"{zoom}%")
    page.evaluate(DRAWN_AGAIN)
    found: list[str] = page.evaluate(CLIPPED)
    if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
        found.append("the page")
    page.evaluate("() => { document.documentElement.style.fontSize = ''; }")
    return [f"{width} px, {zoom} %: {one}" for one in found]


def faults_of(page: Page) -> list[str]:
    """Return what is wrong with how a page looks: in both themes, small, enlarged, with long texts.

    Its texts are long ones afterwards.
    """
    found = misfits(page, SMALL["width"]) + barriers(page) + pale_in_the_dark(page)
    found += misfits(page, 640, zoom=200)
    page.evaluate(f"() => {{ {WITH_LONGER_WORDS} stretchBelow(document.body); }}")
    if not re.search("[åêîøü]", page.locator("h1").inner_text()):
        found.append("no longer words")
    found += misfits(page, SMALL["width"])
    found += page.evaluate("window.policyReports")
    return found


def pale_in_the_dark(page: Page) -> list[str]:
    """Return what cannot be read in the dark theme, in which only colours differ."""
    page.emulate_media(color_scheme="dark")
    colours = {"type": "rule", "values": ["color-contrast"]}
    found = [f"dark: {one}" for one in _violations(page, colours)]
    page.emulate_media(color_scheme="light")
    return found


def style(node: Locator, name: str) -> str:
    """Return a computed property."""
    found: str = node.evaluate("(node, name) => getComputedStyle(node)[name]", name)
    return found


def has_border(node: Locator) -> bool:
    """Return whether a border can be told from what is inside."""
    line, inside = style(node, "borderBottomColor"), style(node, "backgroundColor")
    return style(node, "borderBottomStyle") == "solid" and line != inside
