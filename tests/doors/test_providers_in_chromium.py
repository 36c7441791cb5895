"""Every kind of provider: added, tried, changed, saved again in the console, and signed in with."""

import json
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
import sqlalchemy as sa
from flask import Flask
from playwright.sync_api import Browser, Page, expect

from app.core.http_client import HttpClient
from app.external_auth.drivers import DRIVERS
from app.external_auth.models import Provider, ProviderKind
from app.external_auth.providers.schemas import SCHEMAS
from app.pages.texts import catalogues
from app.web.runtime import EXTENSION
from tests.doors.findings import Findings
from tests.support import external, factories
from tests.support.api import ORIGIN, ApiClient
from tests.support.browser import Complaints, needs_chromium
from tests.support.fake_provider import CLIENT_ID, CLIENT_SECRET, REMOVED, FakeProvider
from tests.support.pages import Site, answered, is_drawn, open_as, opened, told

pytestmark = needs_chromium

SWITCHES = ("auto_provision_enabled", "auto_link_verified_email_enabled", "enabled")
PROVIDERS = "/external-auth/providers"
TEXTS = catalogues()["en"].of("admin")


@pytest.fixture
def page(
    chromium: Browser, site: Site, complaints: Complaints, loopback: FakeProvider
) -> Iterator[Page]:
    with opened(chromium, site.origin, complaints, loopback.issuer) as page:
        yield page
    loopback.replies.clear()
    loopback.token_answer.clear()
    loopback.claims.clear()


# --- the console ----------------------------------------------------------------------------------


def required_values(kind: str, at: FakeProvider) -> dict[str, str]:
    """What an operator types into the fields that must be filled in; whatever kind has them."""
    return {
        "display_name": f"Our {kind}",
        "issuer_url": at.issuer,
        "authorization_url": f"{at.issuer}/authorize",
        "token_url": f"{at.issuer}/token",
        "userinfo_url": f"{at.issuer}/userinfo",
        "client_id": CLIENT_ID,
    }


def answer_to(page: Page, button: str) -> tuple[int, str]:
    """Press a button of the form; return status and text of what the service answers."""

    def is_change(answer: Any) -> bool:
        return answer.request.method in {"POST", "PATCH"} and PROVIDERS in answer.url

    with page.expect_response(is_change) as answer:
        page.get_by_role("button", name=button, exact=True).click()
    return answer.value.status, answer.value.text()


def save(page: Page, button: str = "Save") -> None:
    """Save, and wait for the form that is drawn anew."""
    page.locator("#settings form").evaluate("(form) => form.classList.add('before')")
    status, text = answer_to(page, button)
    assert status in {200, 201}, text
    expect(page.locator("form.before")).to_have_count(0)
    expect(page.locator("#problem")).to_be_hidden()


def try_out(page: Page) -> None:
    """Press the button, and expect on the page what was checked."""
    status, text = answer_to(page, "Test")
    assert status == 200, text
    shown = page.locator("#settings .checks li.ok p")
    expect(shown).to_have_text([one["message"] for one in json.loads(text)["data"]["checks"]])


def try_out_offline(page: Page, complaints: Complaints) -> None:
    """Press the button twice, and answer in the place of a service that would ask the internet."""
    draft = f"**{PROVIDERS}/test"
    said = [{"template": "Usable keys: {count}.", "values": {"count": "2"}}]
    checks = [{"name": "jwks", "success": True, "message": "Usable keys: 2.", "sentences": said}]
    answered(page, draft, 400, "bad_request")
    assert answer_to(page, "Test")[0] == 400
    page.unroute(draft)
    expect(page.locator("#problem")).to_contain_text("No.")
    complaints.take_refusal(400)
    answered(page, draft, 200, "success", {"checks": checks})
    try_out(page)
    page.unroute(draft)


def add(page: Page, kind: str, at: FakeProvider, complaints: Complaints) -> None:
    page.goto("/admin/external-auth/new")
    page.locator(".kinds").get_by_role("button", name=TEXTS[f"kind.{kind}"], exact=True).click()
    fields = page.locator("#settings form [required]:visible")
    values = required_values(kind, at)
    for name in fields.evaluate_all("(all) => all.map(({ name }) => name)"):
        page.locator(f"[name={name}]").fill(values[name])
    page.locator("[name=client_secret]").fill(CLIENT_SECRET)
    page.locator("[name=key]").fill(key_of(kind))
    if MOVED.get(ProviderKind(kind)) is issuer:
        try_out_offline(page, complaints)
    else:
        try_out(page)
    save(page, "Add provider")
    page.wait_for_url(f"**/admin/external-auth/{key_of(kind)}")


def edit(page: Page, kind: str) -> None:
    """Change the name and each switch, and save that again unchanged; switch back at the end."""
    before = stored(page, kind)
    page.reload()
    page.locator("[name=display_name]").fill(f"Changed {kind}")
    for name in SWITCHES:
        page.locator(f"[name={name}]").click()
    save(page)
    changed = stored(page, kind)
    assert changed["display_name"] == f"Changed {kind}"
    assert [changed[name] for name in SWITCHES] == [not before[name] for name in SWITCHES]
    save(page)
    assert stored(page, kind) == changed
    for name in SWITCHES:
        page.locator(f"[name={name}]").click()
    save(page)
    assert stored(page, kind)["client_secret_configured"]


def stored(page: Page, kind: str) -> dict[str, Any]:
    listed: Any = told(page, f"/admin{PROVIDERS}?limit=100")["items"]
    [found] = [one for one in listed if one["key"] == key_of(kind)]
    return {name: value for name, value in found.items() if name != "updated_at"}


def key_of(kind: str) -> str:
    return kind.replace("_", "-")


# --- signing in -----------------------------------------------------------------------------------


def github(at: FakeProvider) -> dict[str, Any]:
    """Answer as GitHub does; return the addresses."""
    at.reply("/user", {"login": "jane", "id": 583231, "name": "Jane"})
    at.reply("/user/emails", [{"email": "jane@example.com", "primary": True, "verified": True}])
    return endpoints(at, "/user")


def qq(at: FakeProvider) -> dict[str, Any]:
    """Answer as QQ does; return the addresses."""
    at.token_answer.update(expires_in="7776000", token_type=REMOVED)
    at.reply("/me", {"client_id": at.client_id, "openid": "A1B2C3"})
    at.reply("/user/get_user_info", {"ret": 0, "msg": "", "nickname": "Jane"})
    return endpoints(at, "/user/get_user_info")


def endpoints(at: FakeProvider, user_info: str) -> dict[str, Any]:
    addresses = {
        "authorization_url": "/authorize",
        "token_url": "/token",
        "userinfo_url": user_info,
    }
    return {name: f"{at.issuer}{path}" for name, path in addresses.items()}


def issuer(at: FakeProvider) -> dict[str, Any]:
    return {"issuer_url": at.issuer, "options": {}}


# Puts a service with public addresses of its own on this machine; returns what to store of it.
# Until then, one with an issuer would be asked when it is tried.
MOVED: dict[ProviderKind, Callable[[FakeProvider], dict[str, Any]]] = {
    ProviderKind.GITHUB: github,
    ProviderKind.GOOGLE: issuer,
    ProviderKind.MICROSOFT: issuer,
    ProviderKind.QQ: qq,
}


def move_here(site: Site, kind: str, at: FakeProvider) -> None:
    moved = sa.update(Provider).where(Provider.key == key_of(kind))
    with site.rt.transaction() as session:
        session.execute(moved.values(**MOVED[ProviderKind(kind)](at)))


def sign_in(page: Page, site: Site, kind: str) -> None:
    """Sign in as somebody new, prove whose account it is, and sign in again as one who is known."""
    page.context.clear_cookies()
    page.goto("/login")
    page.get_by_role("button", name=f"Continue with Changed {kind}").click()
    expect(page.get_by_role("heading", name="You are new here")).to_be_focused()
    page.get_by_label("Username or e-mail").fill(site.ada.username)
    page.locator("[name=password]:visible").fill(site.ada.password)
    page.get_by_role("button", name="Sign in and connect").click()
    arrived(page, site)
    page.context.clear_cookies()
    page.goto("/login")
    page.get_by_role("button", name=f"Continue with Changed {kind}").click()
    arrived(page, site)


def arrived(page: Page, site: Site) -> None:
    page.wait_for_url("**/settings/profile")
    expect(page.locator("#me")).to_contain_text(site.ada.username)
    is_drawn(page)


def test_every_kind_is_added_tried_changed_saved_again_and_signed_in_with(
    page: Page, site: Site, loopback: FakeProvider, complaints: Complaints
) -> None:
    open_as(page, site.ada, "/admin/external-auth")
    session: Any = page.context.cookies()
    kinds: Any = told(page, "/admin/external-auth/provider-kinds")
    assert {kind["kind"] for kind in kinds} == set(DRIVERS)
    findings = Findings()
    for described in kinds:
        kind, has_own_address = described["kind"], not described["issuer_url_supported"]
        loopback.claims["sub"] = kind
        with findings.about(kind):
            page.context.add_cookies(session)
            add(page, kind, loopback, complaints)
            edit(page, kind)
            if has_own_address:
                move_here(site, kind, loopback)
            try_out(page)
            sign_in(page, site, kind)
        page.context.clear_cookies()
        loopback.replies.clear()
        loopback.token_answer.clear()
    findings.are_none()


# --- where browsers are sent ----------------------------------------------------------------------

# Documents of the public services, as far as a sign-in that begins needs them.
PUBLISHED = {
    "https://accounts.google.com/.well-known/openid-configuration": {
        "issuer": "https://accounts.google.com",
        "authorization_endpoint": "https://accounts.google.com/o/oauth2/v2/auth",
        "token_endpoint": "https://oauth2.googleapis.com/token",
        "jwks_uri": "https://www.googleapis.com/oauth2/v3/certs",
    },
    "https://login.microsoftonline.com/common/v2.0/.well-known/openid-configuration": {
        "issuer": "https://login.microsoftonline.com/{tenantid}/v2.0",
        "authorization_endpoint": "https://login.microsoftonline.com/common/oauth2/v2.0/authorize",
        "token_endpoint": "https://login.microsoftonline.com/common/oauth2/v2.0/token",
        "jwks_uri": "https://login.microsoftonline.com/common/discovery/v2.0/keys",
    },
}
CAPABILITIES = {
    "response_types_supported": ["code"],
    "subject_types_supported": ["public"],
    "id_token_signing_alg_values_supported": ["RS256"],
}
OWN_HOSTS = {
    "github": "github.com",
    "google": "accounts.google.com",
    "microsoft": "login.microsoftonline.com",
    "qq": "graph.qq.com",
}


class Published(HttpClient):
    """Answers with what the public services have published, and asks nobody."""

    def get(self, url: str, **_: Any) -> requests.Response:
        document = PUBLISHED[url] | CAPABILITIES if url in PUBLISHED else {"keys": []}
        answer = requests.Response()
        answer.status_code, answer._content = 200, json.dumps(document).encode()
        answer.headers["Content-Type"] = "application/json"
        return answer


def test_every_service_with_an_address_of_its_own_is_where_browsers_are_sent(
    make_app: Callable[..., Flask],
) -> None:
    app = make_app(http_client=Published())
    rt = app.extensions[EXTENSION]
    factories.configure(rt, public_site_url=[ORIGIN])
    sent = {}
    for kind, schema in SCHEMAS.items():
        if schema.describe()["issuer_url_supported"]:
            continue
        external.add_provider(rt, kind=kind, key=key_of(kind), client_id=f"id of {kind}")
        started = external.start(ApiClient(app), kind, key_of(kind))
        sent[kind.value] = urlsplit(started.url).hostname
        assert started.query["client_id"] == f"id of {kind}"
    assert sent == OWN_HOSTS
