"""The forms beside the sign-in are calm while service or network are not there."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.support.browser import Complaints, needs_chromium
from tests.support.factories import PASSWORD
from tests.support.pages import Site, answered, fill, send

pytestmark = needs_chromium

STATE = {"allow_user_registration": True, "password_login_enabled": True}
INVITATION = {"email": "bob@example.com", "expires_at": "2026-12-02T10:00:00Z"}
ME = {"username": "ada", "role": "admin", "must_change_password": False}
ACCOUNT = {"username": "bob", "email": "bob@example.com", "password": PASSWORD}
NEW_PASSWORD = {"new_password": "another good password"}

Open = Callable[[Page], None]


def signed_in(page: Page, **others: Any) -> None:
    """Let the pages believe that somebody is signed in."""
    page.goto("/login")
    page.evaluate("document.cookie = 'service_csrf=x'")
    answered(page, "**/auth/me", 200, "success", ME | others)


def open_setup(page: Page) -> None:
    answered(page, "**/auth/check", 200, "success", {**STATE, "setup_state": "needs_admin"})
    page.goto("/setup")


def open_register(page: Page) -> None:
    page.goto("/register")


def open_reset(page: Page) -> None:
    page.goto("/reset-password")


def open_new_password(page: Page) -> None:
    page.goto("/reset-password?token=abc")
    expect(page.get_by_role("heading", name="Choose a new password")).to_be_visible()


def open_invite(page: Page) -> None:
    answered(page, "**/auth/invitations/*", 200, "success", INVITATION)
    page.goto("/invite/abc")
    expect(page.get_by_label("E-mail address")).to_have_value(INVITATION["email"])


def open_force(page: Page) -> None:
    signed_in(page, must_change_password=True)
    page.goto("/force-password-change")
    expect(page.get_by_text("Not ada?")).to_be_visible()


# How each form is opened and filled in, the call it makes, and what is said when nobody knows
# whether that did something.
FORMS: dict[str, tuple[Open, dict[str, str], str, str]] = {
    "setup": (open_setup, ACCOUNT, "**/auth/setup", "The account may already have been created"),
    "register": (
        open_register,
        ACCOUNT,
        "**/auth/register",
        "The account may already have been created",
    ),
    "reset": (open_reset, {"email": "a@b.example"}, "**/reset/request", "The service is busy"),
    "new password": (
        open_new_password,
        NEW_PASSWORD,
        "**/reset/confirm",
        "The password may already have been changed",
    ),
    "invite": (
        open_invite,
        {"username": "bob", "password": PASSWORD},
        "**/invitations/*/accept",
        "The account may already have been created",
    ),
    "force": (
        open_force,
        {"current_password": PASSWORD, **NEW_PASSWORD},
        "**/auth/password",
        "The password may already have been changed",
    ),
}


def sent(page: Page, name: str) -> None:
    """Open a form, fill it in and send it."""
    opens, values, _, _ = FORMS[name]
    opens(page)
    fill(page, **values)
    send(page)


BUSY = '{"code":"database.error","msg":"No.","data":null,"error":null}'
LIMIT = '{"code":"rate_limited","msg":"No.","data":null,"error":null}'
GATEWAY = "<html>Bad gateway"


@pytest.mark.parametrize("name", FORMS)
def test_what_goes_wrong_is_said_and_nothing_typed_is_lost(
    page: Page, site: Site, complaints: Complaints, name: str
) -> None:
    """Nor is anything sent again of which nobody knows whether it was done."""
    opens, values, pattern, doubt = FORMS[name]
    problem = page.get_by_role("alert")
    answers: list[dict[str, Any]] = []
    calls: list[str] = []

    def answer(route: Route) -> None:
        calls.append(route.request.url)
        route.fulfill(**answers[-1])

    def is_said_once(words: str | re.Pattern[str]) -> None:
        calls.clear()
        send(page)
        expect(problem).to_contain_text(words)
        expect(page.locator("[type=submit]:visible")).not_to_have_attribute("aria-disabled", "true")
        assert len(calls) == 1, words
        for field, value in values.items():
            expect(page.locator(f"[name={field}]:visible")).to_have_value(value)

    page.route(pattern, answer)
    opens(page)
    fill(page, **values)
    for status, body in ((503, BUSY), (502, GATEWAY)):
        answers.append({"status": status, "body": body})
        is_said_once(doubt)
    answers.append({"status": 429, "body": LIMIT, "headers": {"Retry-After": "42"}})
    is_said_once(re.compile("Try again in 4[0-2] seconds"))
    page.unroute(pattern)
    page.context.set_offline(True)
    send(page)
    expect(problem).to_contain_text("No connection.")
    for field, value in values.items():
        expect(page.locator(f"[name={field}]:visible")).to_have_value(value)
    page.context.set_offline(False)
    complaints.forgive()


@pytest.mark.parametrize(
    ("pattern", "opens", "seen"),
    [
        ("**/auth/invitations/*", open_invite, "You are invited"),
        ("**/auth/check", open_setup, "Set up Gatehouse"),
    ],
)
def test_what_a_page_has_to_know_is_asked_again(
    page: Page, site: Site, complaints: Complaints, pattern: str, opens: Open, seen: str
) -> None:
    refused = []

    def refuse_once(route: Route) -> None:
        if refused:
            route.fallback()
        else:
            refused.append(route.request.url)
            route.abort()

    answered(page, pattern, 200, "success", {**INVITATION, **STATE, "setup_state": "needs_admin"})
    page.route(pattern, refuse_once)
    with page.expect_event("requestfailed"):
        page.goto("/invite/abc" if opens is open_invite else "/setup")
    expect(page.get_by_role("heading", name=seen)).to_be_visible()
    expect(page.get_by_label("Username")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)
    assert len(refused) == 1
    complaints.forgive()


def test_an_account_without_a_sign_in_is_there_nevertheless(
    page: Page, site: Site, complaints: Complaints
) -> None:
    answered(page, "**/auth/register", 201, "success", {})
    answered(page, "**/auth/login", 200, "success", {"status": "authenticated"})
    sent(page, "register")
    expect(page.get_by_role("alert")).to_contain_text("Your browser did not keep you signed in.")
    answered(page, "**/auth/login", 503, "database.error")
    send(page)
    page.wait_for_url("**/login?registered=1")
    expect(page.get_by_text("Your account is ready. Sign in.")).to_be_visible()
    complaints.forgive()


def test_the_keyboard_is_enough(page: Page, site: Site) -> None:
    page.goto("/register")
    expect(page.get_by_role("button", name="Show the password")).to_be_visible()
    page.get_by_role("link", name="Gatehouse").focus()
    for text in (*ACCOUNT.values(), ""):
        page.keyboard.press("Tab")
        page.keyboard.type(text)
    page.keyboard.press("Space")  # shows the password
    expect(page.get_by_label("Password", exact=True)).to_have_attribute("type", "text")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**/settings/profile")
    expect(page.locator("#me")).to_contain_text("bob")
