"""Every state of the sign-in pages can be used by everybody: each is reached once and looked at.

In both themes, on a small screen, with large letters, with long texts and with forced colours.
"""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.support.browser import Complaints, needs_chromium
from tests.support.factories import PASSWORD
from tests.support.pages import (
    Site,
    answered,
    faults_of,
    fill,
    has_border,
    send,
    sign_in,
    sign_in_by_api,
    style,
)

pytestmark = needs_chromium

# Opens pages, and yields the name of each state that it has brought them to.
Walk = Callable[[Page, Site], Iterator[str]]

STATE = {"allow_user_registration": True, "password_login_enabled": True}
INVITATION = {"email": "bob@example.com", "expires_at": "2026-12-02T10:00:00Z"}
CHALLENGE = "mfa=required&flow=mfa_abc&expires_in=300&methods=totp,recovery_code,email_code"
TRUSTING = f"{CHALLENGE}&remember_device_secs=2592000"
# Lets the page wait for a code that was mailed.
MAILED = """history.replaceState({emailCode: {
  token: "emc_abc", email: "maximilian.freiherr-von-thurn@analytical-society.example",
  endsAt: Date.now() + 600000, againAt: Date.now() + 60000}}, "")"""
PROVIDERS = [
    {"key": "acme", "kind": "generic_oidc", "display_name": "Acme <b>Corp</b>", "icon_url": None},
    {"key": "long", "kind": "generic_oidc", "display_name": "Long" * 30, "icon_url": None},
]
ACCOUNT = {"username": "bob", "email": "bob@example.com", "password": PASSWORD}
WRONG = {"username": "b b", "email": "bob@", "password": "short"}


def believed(page: Page, role: str = "admin", **others: bool) -> None:
    """Let the pages believe that somebody is signed in."""
    origin = page.evaluate("location.origin")
    page.context.add_cookies([{"name": "service_csrf", "value": "x", "url": origin}])
    me = {"username": "ada", "role": role, "must_change_password": False}
    answered(page, "**/auth/me", 200, "success", me | others)


def refused(page: Page, pattern: str, status: int, code: str, **headers: str) -> None:
    """Send the form, which is filled in, and have it refused."""
    answered(page, pattern, status, code, **headers)
    send(page)


def marked(page: Page) -> None:
    expect(page.locator("[aria-invalid=true]:visible").first).to_be_visible()


def sign_in_form(page: Page, site: Site) -> Iterator[str]:
    answered(page, "**/external-auth/providers", 200, "success", PROVIDERS)
    page.goto("/login?contact_verification=invalid&signed_out=1")
    expect(page.get_by_role("button", name="Continue with Acme <b>Corp</b>")).to_be_visible()
    yield "form"
    send(page)
    marked(page)
    yield "empty fields"
    fill(page, identifier="ada", password=PASSWORD)
    refused(page, "**/auth/login", 500, "internal_server_error", **{"X-Request-ID": "a" * 36})
    page.locator("#problem summary").click()
    expect(page.get_by_text("a" * 36)).to_be_visible()
    yield "fault"
    refused(page, "**/auth/login", 429, "rate_limited", **{"Retry-After": "90"})
    expect(page.get_by_role("alert")).to_contain_text("Try again in 1:")
    yield "limit"
    refused(page, "**/auth/login", 403, "auth.pending_activation")
    expect(page.get_by_role("heading", name="Check your mailbox")).to_be_focused()
    yield "pending"


def further_steps(page: Page, site: Site) -> Iterator[str]:
    page.goto(f"/login?{CHALLENGE}")
    page.get_by_role("radio", name="E-mail").check()
    expect(page.get_by_role("button", name="Send code")).to_be_visible()
    yield "code by mail"
    page.goto(f"/login?{TRUSTING}")
    expect(page.get_by_label("Code from your authenticator app")).to_be_focused()
    expect(page.locator("#trust")).to_be_visible()
    send(page)
    marked(page)
    yield "code"
    page.goto("/login")
    page.evaluate(MAILED)
    page.reload()
    expect(page.get_by_label("Code from the e-mail")).to_be_focused()
    send(page)
    marked(page)
    yield "mailed code"
    page.locator(".mailbox .link").click()
    fill(page, email="ada@")
    send(page)
    marked(page)
    yield "address for a code"
    page.goto("/login?external_auth=email_required&flow=oev_1")
    expect(page.get_by_role("heading", name="You are new here")).to_be_focused()
    send(page)
    marked(page)
    yield "unknown identity"
    page.locator("input[type=radio]").nth(1).check()
    expect(page.locator("[type=email]")).to_be_visible()
    yield "unknown identity without an account"
    sign_in_by_api(page, site.ada)
    page.goto("/login")
    expect(page.get_by_role("link", name="Continue")).to_be_visible()
    yield "signed in already"


def registration(page: Page, site: Site) -> Iterator[str]:
    page.goto("/register")
    send(page)
    marked(page)
    yield "empty fields"
    fill(page, **WRONG)
    send(page)
    expect(page.get_by_text("The password is too short")).to_be_visible()
    yield "wrong fields"
    fill(page, **ACCOUNT)
    refused(page, "**/auth/register", 400, "auth.email_exists")
    expect(page.get_by_text("There is already an account with this address.")).to_be_visible()
    yield "taken"
    refused(page, "**/auth/register", 503, "database.error")
    expect(page.get_by_role("alert").get_by_role("link")).to_be_visible()
    yield "doubtful"
    refused(page, "**/auth/register", 403, "auth.registration_disabled")
    expect(page.get_by_role("heading", name="Registration is closed")).to_be_visible()
    yield "closed"


def forgotten_password(page: Page, site: Site) -> Iterator[str]:
    page.goto("/reset-password")
    send(page)
    marked(page)
    yield "empty"
    fill(page, email="somebody.with.a.long.name@mail.example.com")
    answered(page, "**/reset/request", 200, "success", {})
    send(page)
    expect(page.get_by_role("button", name="Send again in")).to_be_visible()
    yield "mailed"
    page.goto("/reset-password?token=abc")
    expect(page.get_by_role("heading", name="Choose a new password")).to_be_visible()
    send(page)
    marked(page)
    yield "new password"
    fill(page, new_password=PASSWORD)
    refused(page, "**/reset/confirm", 400, "auth.contact_verification_expired")
    expect(page.get_by_text("The link has expired.")).to_be_visible()
    yield "link over"
    page.goto("/reset-password?token=")
    expect(page.get_by_text("The link is incomplete.")).to_be_visible()
    yield "incomplete link"


def invitation(page: Page, site: Site) -> Iterator[str]:
    page.goto("/invite/none")
    expect(page.get_by_role("heading", name="This invitation is not valid")).to_be_visible()
    yield "unknown"
    answered(page, "**/auth/invitations/*", 200, "success", INVITATION)
    page.goto("/invite/abc")
    expect(page.get_by_label("E-mail address")).to_have_value(INVITATION["email"])
    send(page)
    marked(page)
    yield "empty fields"
    believed(page)
    page.goto("/invite/abc")
    expect(page.get_by_text("You are signed in as ada.")).to_be_visible()
    yield "signed in already"
    answered(page, "**/auth/invitations/*", 503, "database.error")
    page.goto("/invite/abc")
    expect(page.get_by_role("button", name="Try again now")).to_be_visible()
    yield "awaited"
    answered(page, "**/auth/invitations/*", 400, "auth.invitation_accepted")
    page.goto("/invite/abc")
    expect(
        page.get_by_role("heading", name="This invitation has already been used")
    ).to_be_visible()
    yield "used"


def set_up(page: Page, site: Site) -> Iterator[str]:
    answered(page, "**/auth/check", 200, "success", {**STATE, "setup_state": "needs_admin"})
    page.goto("/setup")
    send(page)
    marked(page)
    yield "empty fields"
    fill(page, **WRONG)
    send(page)
    expect(page.get_by_text("The password is too short")).to_be_visible()
    yield "wrong fields"
    for setup_state, role, heading in (
        ("needs_storage", "admin", "Finish the set-up"),
        ("needs_storage", "user", "Finish the set-up"),
        ("ready", "admin", "Everything is set up"),
    ):
        believed(page, role)
        answered(page, "**/auth/check", 200, "success", {**STATE, "setup_state": setup_state})
        page.goto("/setup/storage")
        expect(page.get_by_role("heading", name=heading)).to_be_visible()
        yield f"storage: {setup_state}, {role}"


def forced_change(page: Page, site: Site) -> Iterator[str]:
    page.goto("/settings/nothing")
    expect(page.get_by_role("heading", name="Page not found")).to_be_visible()
    yield "missing page"
    believed(page, must_change_password=True)
    page.goto("/force-password-change")
    expect(page.get_by_text("Not ada?")).to_be_visible()
    send(page)
    marked(page)
    yield "empty fields"
    fill(page, current_password=PASSWORD, new_password="another good password")
    refused(page, "**/auth/password", 401, "auth.credentials_failed")
    expect(page.get_by_text("This is not your current password.")).to_be_visible()
    yield "wrong password"


def languages(page: Page, site: Site) -> Iterator[str]:
    for language in ("de", "zh-CN"):
        page.goto(f"/login?lang={language}")
        expect(page.locator("html")).to_have_attribute("lang", language)
        expect(page.locator("[data-reveals]:visible")).to_be_visible()
        yield language


WALKS: list[Walk] = [
    sign_in_form, further_steps, registration, forgotten_password, invitation, set_up,
    forced_change, languages,
]  # fmt: skip


@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: walk.__name__)
def test_everybody_can_use_every_state(
    page: Page, site: Site, complaints: Complaints, walk: Walk
) -> None:
    # Refusals are part of some states, and the browser logs each.
    complaints.forgive("status of")
    found = {state: faults for state in walk(page, site) if (faults := faults_of(page))}
    page.goto("about:blank")  # some states ask again and again
    assert found == {}


def test_with_forced_colours_borders_and_states_stay_visible(page: Page, site: Site) -> None:
    page.emulate_media(forced_colors="active")
    page.goto("/login")
    enabled = style(page.locator("[type=submit]"), "color")
    send(page)
    for selector in ("#identifier", "#card", "[type=submit]", "#language"):
        assert has_border(page.locator(selector)), selector
    assert style(page.locator("#identifier"), "borderBottomWidth") == "2px"
    # What is busy looks busy.
    page.route("**/auth/login", lambda route: None)  # never answered
    sign_in(page, site.ada)
    assert style(page.locator("[aria-disabled=true]"), "color") != enabled
    spinner = page.locator(".spinner")
    assert style(spinner, "borderRightColor") != style(spinner, "borderLeftColor")
    page.goto(f"/login?{CHALLENGE}")
    chosen, other = (page.locator(".tabs span").nth(number) for number in (0, 1))
    expect(chosen).to_be_visible()
    assert style(chosen, "outlineStyle") == "solid"
    assert style(other, "outlineStyle") == "none"
    page.locator(".tabs input").nth(1).focus()
    assert style(other, "outlineStyle") == "solid"
    # A new password shows its length.
    page.goto("/register")
    fill(page, password=PASSWORD)
    meter = page.locator(".length span")
    assert style(meter, "backgroundColor") != style(page.locator("#card"), "backgroundColor")


def test_nothing_moves_for_those_who_want_no_motion(page: Page, site: Site) -> None:
    page.emulate_media(reduced_motion="reduce")
    page.route("**/auth/login", lambda route: None)
    page.goto("/login")
    sign_in(page, site.ada)
    expect(page.locator(".spinner")).to_be_visible()
    durations = page.evaluate(
        """() => [
            ...document.getAnimations().map((one) => one.effect.getComputedTiming().endTime),
            ...[...document.querySelectorAll("*")].map((node) =>
              parseFloat(getComputedStyle(node).transitionDuration) * 1000),
        ]"""
    )
    assert max(durations) <= 1
