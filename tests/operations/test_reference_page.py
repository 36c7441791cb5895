"""The reference page in a real browser, on the service as bin/serve runs it."""

import re
from typing import Literal

import pytest
from playwright.sync_api import Page, expect

from tests.support import images
from tests.support.browser import (
    PASSWORD,
    Step,
    needs_chromium,
    set_up_and_sign_in,
    widths,
)
from tests.support.contrast import pale_texts

NEW_PASSWORD = "a second password"

pytestmark = needs_chromium


def test_a_first_session_can_be_walked_through_to_its_end(page: Page) -> None:
    set_up_and_sign_in(page)
    login = Step(page, "Sign in")
    login.press("Sign in")  # a second session, to end one
    expect(login.request).to_contain_text("X-CSRF-Token")
    login.press("Next: Who am I?")

    me = Step(page, "Who am I?")
    me.press("Ask")
    me.says("You are admin, role admin.")
    expect(me.answer).to_contain_text("admin@example.com")
    me.press("Next: Refresh the tokens")
    refresh = Step(page, "Refresh the tokens")
    refresh.press("Refresh")
    refresh.says("A new pair of tokens; the access token lives for 15 minutes.")
    refresh.press("Next: See and end sessions")

    sessions = Step(page, "See and end sessions")
    sessions.press("List")
    sessions.says("2 sessions.")
    sessions.press("Revoke the session of HeadlessChrome")
    sessions.says("The session is over.")
    expect(sessions.node.locator("tbody tr")).to_have_count(1)
    sessions.press("Next: Change the password")

    password = Step(page, "Change the password")
    expect(password.field("Current password")).to_have_value(PASSWORD)
    password.fill("New password", NEW_PASSWORD)
    password.press("Change")
    password.says("Changed.")
    password.press("Next: Sign out")
    logout = Step(page, "Sign out")
    logout.press("Sign out")
    logout.says("Signed out.")
    expect(page.locator("#account")).to_have_text("Signed out")
    expect(page.locator("#first-session .progress")).to_have_text("8 of 8 steps done")


def test_the_steps_can_be_taken_with_the_keyboard_alone(page: Page) -> None:
    page.get_by_role("button", name="Check", exact=True).focus()
    page.keyboard.press("Enter")
    Step(page, "Look at the state").says("The installation is empty")
    page.keyboard.press("Tab")  # request and answer come after the button that leads on
    page.keyboard.press("Enter")
    expect(Step(page, "Create the first administrator").field("Password")).to_be_focused()
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    Step(page, "Create the first administrator").says("admin is the administrator")


def show_operations(page: Page, tag: str = "Profile") -> None:
    """Go to the operations of a tag, which are folded away at first."""
    page.get_by_role("link", name="All routes").click()
    page.locator(f"#operations-tag-{tag} button").click()


def test_operations_are_drawn_when_somebody_comes_to_them(page: Page) -> None:
    """Drawing them keeps the page busy, and whoever walks through the panels waits for nothing."""
    operation = page.locator("#operations-Profile-getMe")
    address = page.url
    page.wait_for_load_state("networkidle")
    expect(operation).to_have_count(0)
    page.get_by_role("link", name="All routes").click()
    expect(page.locator("#operations-tag-Profile")).to_be_visible()
    heading = page.get_by_role("heading", name="All routes").bounding_box()
    assert heading is not None
    assert 0 < heading["y"] < 150
    expect(page.locator("#operations")).to_have_count(1)
    expect(page.get_by_role("main")).to_have_count(1)
    page.goto("about:blank")
    page.goto(f"{address}#/Sessions")
    expect(page.locator("#operations-Sessions-logout")).to_be_visible()


def test_the_address_of_a_panel_stays_one(page: Page) -> None:
    """Swagger UI writes its own kind of address over those that it does not know."""
    address = f"{page.url}#passkeys"
    page.goto("about:blank")
    page.goto(address)
    page.locator("#swagger-ui").scroll_into_view_if_needed()
    expect(page.locator("#operations-tag-Profile")).to_be_attached()
    assert page.url == address


def test_a_refusal_is_shown_with_the_codes_of_its_operation_alone(page: Page) -> None:
    """Swagger UI merges the parts of a schema, and would add up their enums."""
    show_operations(page, "Login")
    login = page.locator("#operations-Login-login")
    login.locator(".opblock-summary-control").click()
    refusal = login.locator(".response[data-code='401']")
    refusal.get_by_role("tab", name="Schema").click()
    schema = refusal.locator(".json-schema-2020-12").first
    expect(schema).to_contain_text("CredentialsFailedAnswer")
    schema.get_by_role("button", name="Expand all").last.click()
    expect(schema).to_contain_text('"auth.credentials_failed"')
    assert re.findall(r'"\w+\.\w+"', schema.inner_text()) == ['"auth.credentials_failed"']
    expect(login.get_by_text("No links").first).to_be_hidden()


def test_operations_can_be_tried_with_the_cookies_of_the_session(page: Page) -> None:
    set_up_and_sign_in(page)
    show_operations(page)
    operation = page.locator("#operations-Profile-getMe")
    operation.locator(".opblock-summary-control").click()
    operation.get_by_role("button", name="Execute").click()
    answer = operation.locator(".live-responses-table .response")
    expect(answer.locator(".response-col_status")).to_contain_text("200")
    expect(answer).to_contain_text("admin@example.com")


def test_a_change_tried_on_the_page_carries_the_csrf_token(page: Page) -> None:
    set_up_and_sign_in(page)
    show_operations(page, "Sessions")
    operation = page.locator("#operations-Sessions-logout")
    operation.locator(".opblock-summary-control").click()
    with page.expect_request("**/auth/logout") as sent:
        operation.get_by_role("button", name="Execute").click()
    assert re.fullmatch(r"[\w-]{20,}", sent.value.headers["x-csrf-token"])
    expect(operation.locator(".live-responses-table .response-col_status").nth(1)).to_contain_text(
        "200"
    )
    expect(page.locator("#account")).to_have_text("Signed out")


def test_an_answer_without_end_is_not_waited_for(page: Page) -> None:
    show_operations(page, "Events")
    path = "/api/v1/auth/events/storage"
    stream = page.locator(".opblock", has=page.locator(f"[data-path='{path}']"))
    stream.locator(".opblock-summary-control").click()
    expect(stream.get_by_role("heading", name="Responses")).to_be_visible()
    expect(stream.get_by_role("button", name="Execute")).to_have_count(0)
    stream.get_by_role("link", name="Live events").click()
    expect(page.get_by_role("heading", name="Live events", exact=True)).to_be_in_viewport()


def test_a_picture_can_be_uploaded_and_is_shown(page: Page) -> None:
    set_up_and_sign_in(page)
    show_operations(page, "Avatars")
    upload = page.locator("#operations-Avatars-uploadAvatar")
    upload.locator(".opblock-summary-control").click()
    picture = images.encoded(images.quarters(), "GIF")
    upload.locator("input[type=file]").set_input_files(
        {"name": "me.gif", "mimeType": "image/gif", "buffer": picture}
    )
    upload.get_by_role("button", name="Execute").click()
    expect(upload.locator(".live-responses-table .response").first).to_contain_text(
        '"applied": true'
    )

    show = page.locator("#operations-Avatars-getAvatar")
    show.locator(".opblock-summary-control").click()
    show.locator("tr[data-param-name='size'] select").select_option("512")
    show.get_by_role("button", name="Execute").click()
    shown = show.locator(".live-responses-table img")
    expect(shown).to_be_visible()
    assert shown.evaluate("img => img.decode().then(() => img.naturalWidth)") == 512


def test_a_narrow_page_is_no_wider_than_its_screen(page: Page) -> None:
    page.set_viewport_size({"width": 375, "height": 800})
    address = page.url
    for panel in ("passkeys", "live-events"):
        page.goto("about:blank")
        page.goto(f"{address}#{panel}")
        bar = page.locator(".bar").bounding_box()
        heading = page.locator(f"#{panel} h2").bounding_box()
        assert bar is not None
        assert heading is not None
        assert bar["y"] == 0
        assert bar["height"] < heading["y"] < bar["height"] + 60
    assert max(widths(page)) <= 375

    show_operations(page, "Login")  # its link is brought into view inside the bar
    login = page.locator(".opblock", has=page.locator("[data-path='/api/v1/auth/login']"))
    login.locator(".opblock-summary-control").click()
    types = login.locator(".response-control-media-type select")
    expect(types.first).to_be_visible()
    assert max(widths(page)) <= 375
    sizes = types.evaluate_all("all => all.map((one) => one.getBoundingClientRect().width)")
    assert min(sizes) > 150
    expect(login.get_by_text("No links").first).to_be_hidden()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_can_be_read(page: Page, scheme: Literal["light", "dark"]) -> None:
    page.emulate_media(color_scheme=scheme)
    set_up_and_sign_in(page)
    assert pale_texts(page) == []
    show_operations(page)
    me = page.locator("#operations-Profile-getMe")
    expect(me).to_be_visible()
    for tag in ("Passkeys", "Passwords", "External_auth"):
        page.locator(f"#operations-tag-{tag} button").click()
    kinds = ("post", "put", "patch", "delete", "deprecated")
    for operation in (me, *(page.locator(f".opblock-{kind}").first for kind in kinds)):
        operation.locator(".opblock-summary-control").click()
        expect(operation.locator(".responses-inner")).to_be_visible()
        operation.get_by_role("tab", name="Schema").first.click()
    me.get_by_role("button", name="Execute").click()
    expect(me.locator(".live-responses-table")).to_contain_text("admin@example.com")
    assert pale_texts(page) == []
