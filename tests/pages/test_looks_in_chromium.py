"""The sign-in pages with long texts, large letters, forced colours and without motion."""

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.browser import Complaints, needs_chromium
from tests.support.factories import PASSWORD
from tests.support.pages import (
    CLIPPED,
    SMALL,
    Site,
    answered,
    fill,
    has_border,
    opened,
    send,
    sign_in,
    stretch_texts,
    style,
)

pytestmark = needs_chromium

STATE = {"allow_user_registration": True, "password_login_enabled": True}
INVITATION = {"email": "bob@example.com", "expires_at": "2026-12-02T10:00:00Z"}
CHALLENGE = "mfa=required&flow=mfa_abc&expires_in=300&methods=totp,recovery_code,email_code"

State = Callable[[Page, Site], None]


@pytest.fixture
def small(chromium: Browser, site: Site) -> Iterator[Page]:
    """A page on a small screen; refusals are part of some states."""
    complaints = Complaints()
    with opened(chromium, site.origin, complaints, viewport=SMALL, reduced_motion="reduce") as page:
        yield page
        complaints.texts = [text for text in complaints.texts if "status of" not in text]


def believed(page: Page, role: str = "admin", **others: bool) -> None:
    """Let the pages believe that somebody is signed in."""
    page.context.add_cookies([{"name": "service_csrf", "value": "x", "url": page.url}])
    me = {"username": "ada", "role": role, "must_change_password": False}
    answered(page, "**/auth/me", 200, "success", me | others)


def at(path: str) -> State:
    """Return what opens a path and sends its form empty, if there is one."""

    def opens(page: Page, site: Site) -> None:
        page.goto(path)
        page.wait_for_load_state("networkidle")
        if page.locator("[type=submit]:visible").count():
            send(page)

    opens.__name__ = path
    return opens


def providers(page: Page, site: Site) -> None:
    one = {"key": "a", "kind": "generic_oidc", "display_name": "Acme" * 12, "icon_url": None}
    answered(page, "**/external-auth/providers", 200, "success", [one])
    at("/login")(page, site)


def limit(page: Page, site: Site) -> None:
    answered(page, "**/auth/login", 429, "rate_limited", **{"Retry-After": "90"})
    page.goto("/login")
    fill(page, identifier="ada", password=PASSWORD)
    send(page)
    expect(page.get_by_role("alert")).to_be_visible()


def fault(page: Page, site: Site) -> None:
    answered(page, "**/auth/login", 500, "internal_server_error", **{"X-Request-ID": "a" * 36})
    page.goto("/login")
    fill(page, identifier="ada", password=PASSWORD)
    send(page)
    page.locator("summary").click()


def pending(page: Page, site: Site) -> None:
    answered(page, "**/auth/login", 403, "auth.pending_activation")
    page.goto("/login")
    fill(page, identifier="ada", password=PASSWORD)
    send(page)
    expect(page.locator("#emblem")).to_be_visible()


def mailed(page: Page, site: Site) -> None:
    answered(page, "**/reset/request", 200, "success", {})
    page.goto("/reset-password")
    fill(page, email="somebody.with.a.long.name@mail.example.com")
    send(page)
    expect(page.locator("#emblem")).to_be_visible()


def invited(page: Page, site: Site) -> None:
    answered(page, "**/auth/invitations/*", 200, "success", INVITATION)
    at("/invite/abc")(page, site)


def set_up(page: Page, site: Site) -> None:
    answered(page, "**/auth/check", 200, "success", {**STATE, "setup_state": "needs_admin"})
    at("/setup")(page, site)


def forced(page: Page, site: Site) -> None:
    page.goto("/login")
    believed(page, must_change_password=True)
    at("/force-password-change")(page, site)


def stored(page: Page, site: Site) -> None:
    page.goto("/login")
    believed(page)
    answered(page, "**/auth/check", 200, "success", {**STATE, "setup_state": "needs_storage"})
    at("/setup/storage")(page, site)


def ready(page: Page, site: Site) -> None:
    page.goto("/login")
    believed(page)
    at("/setup/storage")(page, site)


STATES = [
    at("/login?contact_verification=invalid&signed_out=1"), at(f"/login?{CHALLENGE}"),
    at("/login?external_auth=email_required&flow=oev_1"), providers, limit, fault, pending,
    at("/register"), at("/reset-password"), at("/reset-password?token=abc"), mailed,
    at("/invite/none"), invited, set_up, forced, stored, ready,
]  # fmt: skip


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_texts_that_are_long_fit_a_small_screen(small: Page, site: Site, state: State) -> None:
    stretch_texts(small)
    state(small, site)
    small.wait_for_load_state("networkidle")
    assert re.search("[åêîøü]", small.locator("h1").inner_text())
    assert small.evaluate(CLIPPED) == []
    assert small.evaluate("document.documentElement.scrollWidth") == SMALL["width"]


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_letters_of_twice_the_size_fit(small: Page, site: Site, state: State) -> None:
    small.set_viewport_size({"width": 640, "height": 900})
    state(small, site)
    small.evaluate("document.documentElement.style.fontSize = '200%'")
    small.wait_for_load_state("networkidle")
    assert small.evaluate(CLIPPED) == []
    assert small.evaluate("document.documentElement.scrollWidth") == 640


def test_with_forced_colours_borders_and_states_stay_visible(page: Page, site: Site) -> None:
    page.emulate_media(forced_colors="active")
    page.goto("/login")
    send(page)
    for selector in ("#identifier", "#card", "[type=submit]", "#language"):
        assert has_border(page.locator(selector)), selector
    invalid = page.locator("#identifier")
    assert style(invalid, "borderBottomWidth") == "2px"
    page.goto(f"/login?{CHALLENGE}")
    chosen, other = (page.locator(".tabs span").nth(number) for number in (0, 1))
    expect(chosen).to_be_visible()
    assert style(chosen, "outlineStyle") == "solid"
    assert style(other, "outlineStyle") == "none"
    page.locator(".tabs input").nth(1).focus()
    assert style(other, "outlineStyle") == "solid"


def test_with_forced_colours_what_is_busy_looks_busy(page: Page, site: Site) -> None:
    page.emulate_media(forced_colors="active")
    page.route("**/auth/login", lambda route: None)  # never answered
    page.goto("/login")
    enabled = style(page.locator("[type=submit]"), "color")
    sign_in(page, site.ada)
    assert style(page.locator("[aria-disabled=true]"), "color") != enabled
    spinner = page.locator(".spinner")
    assert style(spinner, "borderRightColor") != style(spinner, "borderLeftColor")


def test_with_forced_colours_a_new_password_shows_its_length(page: Page, site: Site) -> None:
    page.emulate_media(forced_colors="active")
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
