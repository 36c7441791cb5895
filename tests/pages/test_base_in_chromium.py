"""The base modules: waiting for the service, one refresh for all tabs, dialogs, formats."""

import json

import pytest
from playwright.sync_api import Page, Route, expect

from app.audit.models import Action
from app.sessions.models import LoginSession
from tests.support.browser import Complaints, needs_chromium
from tests.support.factories import audit_rows, count
from tests.support.pages import (
    Site,
    ask,
    is_drawn,
    is_ready,
    is_signed_in,
    open_as,
    sign_in,
)

pytestmark = needs_chromium


# Reads and changes something, without waiting for it.
WORK = """(name) => {
  const body = { display_name: name };
  const work = ({ call }) => Promise.all([
    call("get", "/auth/me").then((me) => me.username),
    call("patch", "/auth/profile", { body }).then((profile) => profile.display_name),
  ]);
  window.work = window.module("api").then(work);
}"""


def take_all(complaints: Complaints, words: str) -> int:
    """Take away what is expected, and return how often it came."""
    before = len(complaints.texts)
    complaints.texts = [text for text in complaints.texts if words not in text]
    return before - len(complaints.texts)


def test_a_session_goes_on_until_it_has_ended(
    page: Page, site: Site, complaints: Complaints
) -> None:
    open_as(page, site.ada, "/settings/profile")
    is_drawn(page)
    # An access token that ran out is renewed once for all calls.
    refreshed = []
    page.on("request", lambda r: refreshed.append(r.url) if r.url.endswith("/auth/refresh") else 0)
    page.context.clear_cookies(name="service_access")
    names = page.evaluate(
        """async () => {
            const { call } = await window.module("api");
            const five = Array.from({ length: 5 }, () => call("get", "/auth/me"));
            const all = await Promise.all(five);
            return all.map((me) => me.username);
        }"""
    )
    assert names == ["ada"] * 5
    assert len(refreshed) == 1

    # A change outlives the refresh of another tab.
    def come_between(route: Route) -> None:
        ask(page, "/auth/refresh")  # the header is written, the cookies are not
        route.continue_()

    page.route("**/api/v1/auth/profile", come_between, times=1)
    page.evaluate(WORK, "ada L.")
    assert page.evaluate("window.work") == ["ada", "ada L."]
    # A read waits for the service.
    body = json.dumps({"code": "database.error", "msg": "Away.", "data": None, "error": None})
    headers = {"Content-Type": "application/json", "Retry-After": "60"}
    refuse = {"status": 503, "body": body, "headers": headers}
    page.route("**/auth/me", lambda route: route.fulfill(**refuse))
    page.reload()
    expect(page.get_by_role("alert")).to_contain_text("The service is busy or restarting.")
    page.unroute("**/auth/me")
    page.get_by_role("button", name="Try again now").click()
    is_signed_in(page, site.ada)
    expect(page.get_by_role("alert")).to_be_hidden()
    # Ended elsewhere, it leads to the sign-in and back.
    page.context.clear_cookies(name="service_access")
    page.context.clear_cookies(name="service_refresh")
    page.goto("/settings/profile?from=mail")
    page.wait_for_url("**/login?return_path=%2Fsettings%2Fprofile%3Ffrom%3Dmail")
    is_ready(page)
    sign_in(page, site.ada)
    page.wait_for_url("**/settings/profile?from=mail")
    is_drawn(page)
    assert take_all(complaints, "status of 403") == 1
    assert take_all(complaints, "status of 503")
    assert take_all(complaints, "status of 401")


def test_a_dangerous_action_is_asked_about_with_the_focus_on_cancel(page: Page, site: Site) -> None:
    page.goto("/login")
    is_ready(page)
    page.evaluate(
        """async () => {
            const { confirmed } = await window.module("dialog");
            const words = { title: "Delete?", text: "<b>All</b> of it.", verb: "Delete" };
            const about = { ...words, typed: "ada" };
            window.answer = null;
            window.ask = () => confirmed(about).then((answer) => (window.answer = answer));
        }"""
    )
    page.get_by_label("Username or e-mail").focus()
    for answer in (False, True):
        page.evaluate("void window.ask()")
        dialog = page.get_by_role("dialog", name="Delete?")
        expect(dialog).to_contain_text("<b>All</b> of it.")
        expect(dialog.get_by_role("button", name="Cancel")).to_be_focused()
        if answer:
            dialog.get_by_role("button", name="Delete").click()
            expect(dialog.get_by_label("To continue, type ada")).to_be_focused()
            dialog.get_by_label("To continue, type ada").fill("ada")
            dialog.get_by_role("button", name="Delete").click()
        else:
            page.keyboard.press("Escape")
        expect(dialog).to_have_count(0)
        expect(page.get_by_label("Username or e-mail")).to_be_focused()
        page.wait_for_function("(answer) => window.answer === answer", arg=answer)


@pytest.mark.parametrize("late", ["**/i18n/*", "**/signin/login.js"], ids=["texts", "modules"])
def test_a_language_that_is_chosen_before_the_page_is_complete_is_shown(
    page: Page, site: Site, late: str
) -> None:
    held: list[Route] = []
    page.route(late, lambda route: held.append(route), times=1)
    with page.expect_request(late):
        page.goto("/login", wait_until="commit")
    page.get_by_label("Language").select_option("Deutsch")
    if "signin" in late:
        held[0].continue_()
    expect(page.get_by_role("heading", name="Bei Gatehouse anmelden")).to_be_visible()
    is_ready(page)


def test_the_language_and_the_theme_that_were_chosen_are_kept(page: Page, site: Site) -> None:
    page.goto("/login?return_path=%2Fsettings%2Fprofile")
    is_ready(page)
    page.get_by_label("Language").select_option("Deutsch")
    expect(page.get_by_role("heading", name="Bei Gatehouse anmelden")).to_be_visible()
    page.wait_for_url("**/login?return_path=%2Fsettings%2Fprofile")
    is_ready(page)
    page.get_by_label("Farben").select_option("Dunkel")
    page.reload()
    is_ready(page)
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(page.locator("html")).to_have_css("color-scheme", "dark")
    expect(page.get_by_label("Farben")).to_have_value("dark")
    # Moments and sizes are written as the language does.
    written = page.evaluate(
        """async () => {
            const { ago, count, day, moment, size, useZone } = await window.module("format");
            useZone("Asia/Tokyo");
            const iso = "2026-11-25T20:00:00Z";
            const yesterday = new Date(Date.now() - 86400000).toISOString();
            const sizes = [0, 1500, 2.5e9].map(size);
            const { t } = await window.module("i18n");
            const waits = [1, 5000].map((seconds) => t("seconds", { count: seconds }));
            return [day(iso), moment(iso), ...sizes, count(1234567), ago(yesterday), ...waits];
        }"""
    )
    assert [text.replace("\xa0", " ") for text in written] == [
        "26.11.2026",
        "26.11.2026, 05:00",
        "0 Byte",
        "1,5 kB",
        "2,5 GB",
        "1.234.567",
        "gestern",
        "1 Sekunde",
        "5.000 Sekunden",
    ]


def test_a_refusal_for_too_many_attempts_counts_down(
    page: Page, site: Site, complaints: Complaints
) -> None:
    def refuse(route: Route) -> None:
        body = json.dumps({"code": "rate_limited", "msg": "No.", "data": None, "error": None})
        headers = {"Content-Type": "application/json", "Retry-After": "42"}
        route.fulfill(status=429, body=body, headers=headers)

    page.clock.install(time=0)
    page.route("**/auth/login", refuse)
    page.goto("/login")
    is_ready(page)
    page.clock.pause_at(3600)
    sign_in(page, site.ada)
    seen = page.locator("#problem [aria-hidden=true]:not(svg)")
    expect(seen).to_have_text("Too many attempts. Try again in 42 seconds.")
    page.clock.run_for(12_000)
    expect(seen).to_have_text("Too many attempts. Try again in 30 seconds.")
    page.clock.run_for(31_000)
    expect(page.get_by_role("alert")).to_have_text("You can try again now.")
    complaints.take_refusal(429)


def test_two_tabs_that_work_on_refresh_once_and_raise_no_alarm(
    page: Page, site: Site, complaints: Complaints
) -> None:
    """A refresh token is good once: a second use would sign out everywhere.

    Each time, the browser's clock is put forward. The service's is not: the browser's cookie is
    taken away, as it would be by then.
    """
    site.configure(auth_access_token_ttl_secs=120)
    page.context.clock.install()
    open_as(page, site.ada, "/settings/sessions")
    other = page.context.new_page()
    other.goto("/settings/sessions")
    expect(other.locator("#me")).to_contain_text("ada")
    for tab in (page, other):
        is_drawn(tab)
    refreshed = []
    page.context.on("request", lambda r: refreshed.append(r.url) if "/refresh" in r.url else 0)
    for minute in (2, 4, 6):
        page.context.clock.fast_forward("02:00")
        page.context.clear_cookies(name="service_access")
        for tab in (page, other):
            tab.evaluate(WORK, f"At {minute}")
        for tab in (page, other):
            assert tab.evaluate("window.work") == ["ada", f"At {minute}"]
    assert len(refreshed) == 3
    assert audit_rows(site.rt, Action.USER_REFRESH_TOKEN_REUSE_DETECTED) == []
    assert count(site.rt, LoginSession) == 1
    for tab in (page, other):
        tab.reload()
        expect(tab.locator("#me")).to_contain_text("At 6")
    assert take_all(complaints, "status of 401")
