"""Signing in on the page /login, in a real browser on the service as bin/serve runs it."""

import re
from urllib.parse import urlencode, urlsplit

from playwright.sync_api import Browser, Page, Route, expect

from tests.support.browser import Complaints, needs_chromium
from tests.support.pages import (
    Site,
    is_ready,
    is_signed_in,
    open_as,
    opened,
    sign_in,
    sign_out,
)

pytestmark = needs_chromium


def test_who_opens_the_site_is_led_to_the_sign_in_and_back(page: Page, site: Site) -> None:
    page.goto("/")
    page.wait_for_url("**/login?return_path=%2Fsettings%2Fprofile")
    expect(page).to_have_title(re.compile("^Sign in . Gatehouse$"))
    sign_in(page, site.ada)
    is_signed_in(page, site.ada)
    expect(page).to_have_title(re.compile("^Profile . Gatehouse$"))


def test_what_is_wrong_is_said_and_nothing_typed_is_lost(
    page: Page, site: Site, complaints: Complaints
) -> None:
    page.goto("/login")
    # Empty fields are named without asking the service.
    page.get_by_role("button", name="Sign in", exact=True).click()
    name = page.get_by_label("Username or e-mail")
    expect(name).to_be_focused()
    expect(name).to_have_accessible_description("Enter your username or e-mail address.")
    name.fill("a")
    expect(name).not_to_have_attribute("aria-invalid", "true")
    sign_in(page, site.ada, "a wrong password")
    problem = page.get_by_role("alert")
    expect(problem).to_have_text("Name or password is wrong.")
    expect(problem).to_be_focused()
    complaints.take_refusal(401)
    expect(page.get_by_label("Username or e-mail")).to_have_value("ada")
    expect(page.get_by_label("Password", exact=True)).to_have_value("a wrong password")
    page.get_by_label("Password", exact=True).fill(site.ada.password)
    page.keyboard.press("Enter")
    is_signed_in(page, site.ada)


def test_a_form_sent_before_the_texts_are_there_is_sent_then(page: Page, site: Site) -> None:
    held: list[Route] = []
    page.route("**/*.json", lambda route: held.append(route), times=1)
    page.goto("/login", wait_until="domcontentloaded")
    sign_in(page, site.ada)
    assert urlsplit(page.url).path == "/login"
    held[0].continue_()
    is_signed_in(page, site.ada)


HOME = "/settings/profile"
# What an attacker may put into a link to the sign-in page.
ELSEWHERE = [
    "https://evil.example/",
    "//evil.example/",
    "/\\evil.example",
    "\\\\evil.example",
    "/\t/evil.example",
    "/\n/evil.example",
    "javascript:alert(1)",
    "http:evil.example",
    "/" + "a" * 2048,
    "",
]


def test_a_sign_in_leads_where_it_was_asked_to_but_never_elsewhere(page: Page, site: Site) -> None:
    page.goto(f"/login?{urlencode({'return_path': ELSEWHERE[0]})}")
    where = """async (query) => {
        window.history.replaceState(null, "", `/login?${query}`);
        return (await window.module("return_path")).afterSignIn();
    }"""
    for path in ELSEWHERE:
        assert page.evaluate(where, urlencode({"return_path": path})) == HOME, path
    page.evaluate(where, urlencode({"return_path": ELSEWHERE[1]}))
    sign_in(page, site.ada)
    is_signed_in(page, site.ada)
    page.context.clear_cookies()
    page.goto("/login?return_path=%2Fsettings%2Fprofile%3Fa%3Db%23c")
    sign_in(page, site.ada)
    page.wait_for_url("**/settings/profile?a=b#c")


def test_the_keyboard_alone_signs_in(page: Page, site: Site) -> None:
    page.goto("/login")
    is_ready(page)
    expect(page.locator("#identifier")).to_be_focused()
    for _ in range(2):
        page.keyboard.press("Shift+Tab")
    names = []
    for _ in range(9):
        focused = page.locator(":focus")
        names.append(focused.get_attribute("id") or focused.inner_text() or "reveal")
        if names[-1] == "identifier":
            page.keyboard.type(site.ada.username)
        if names[-1] == "password":
            page.keyboard.type(site.ada.password)
        assert focused.evaluate("node => getComputedStyle(node).outlineStyle") == "solid"
        page.keyboard.press("Tab")
    assert names == [
        "Skip to the content", "Gatehouse", "identifier", "password", "reveal", "Forgot password?",
        "stay", "Sign in", "passkey",
    ]  # fmt: skip
    page.locator("#password").press("Enter")
    is_signed_in(page, site.ada)


def test_the_cursor_is_in_the_first_field_where_nothing_else_is_to_be_read(
    page: Page, site: Site, chromium: Browser, complaints: Complaints
) -> None:
    for path, field in (("/register", "username"), ("/reset-password", "email")):
        page.goto(path)
        expect(page.locator(f"#{field}")).to_be_focused()
    page.goto("/login?signed_out=1")
    expect(page.get_by_text("You are signed out.")).to_be_visible()
    is_ready(page)
    expect(page.locator("input:focus")).to_have_count(0)
    # The keyboard of a phone would cover the page.
    with opened(chromium, site.origin, complaints, has_touch=True, is_mobile=True) as phone:
        phone.goto("/login")
        is_ready(phone)
        expect(phone.locator("input:focus")).to_have_count(0)


def test_who_is_signed_in_already_is_not_sent_on(page: Page, site: Site) -> None:
    page.goto("/login")
    sign_in(page, site.ada)
    is_signed_in(page, site.ada)
    page.goto("/login")
    expect(page.get_by_role("heading", name="You are signed in as ada")).to_be_visible()
    page.get_by_role("link", name="Continue").click()
    is_signed_in(page, site.ada)
    page.go_back()
    page.get_by_role("button", name="Use another account").click()
    expect(page.get_by_role("heading", name="Sign in to Gatehouse")).to_be_visible()
    is_ready(page)
    sign_in(page, site.ada)
    is_signed_in(page, site.ada)


def test_an_answer_on_its_way_while_somebody_signs_out_leads_nowhere_else(
    page: Page, site: Site, complaints: Complaints
) -> None:
    held: list[Route] = []
    page.route("**/api/v1/teams", lambda route: held.append(route))

    def go_on(route: Route) -> None:
        held.pop().fulfill(status=401, json={"code": "auth.token_invalid", "msg": "No."})
        route.continue_()

    page.route("**/login?signed_out=1", go_on)
    open_as(page, site.ada, "/settings/profile")
    sign_out(page)
    page.wait_for_url("**/login?signed_out=1")
    expect(page.get_by_text("You are signed out.")).to_be_visible()
    complaints.forgive()  # Chromium may or may not log an answer to a page it is leaving


def test_signing_out_ends_it_in_every_tab(page: Page, site: Site) -> None:
    page.goto("/login")
    sign_in(page, site.ada)
    is_signed_in(page, site.ada)
    other = page.context.new_page()
    other.goto("/settings/profile")
    is_signed_in(other, site.ada)
    sign_out(page)
    for tab in (page, other):
        tab.wait_for_url("**/login?signed_out=1")
        expect(tab.get_by_text("You are signed out.")).to_be_visible()
    page.go_back()
    page.wait_for_url("**/login?return_path=%2Fsettings%2Fprofile")
