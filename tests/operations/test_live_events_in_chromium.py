"""The panel of live events in a real browser, on the service as bin/serve runs it."""

import json

from playwright.sync_api import Page, expect

from tests.support.browser import Complaints, Step, needs_chromium, set_up_and_sign_in
from tests.support.launcher import Service

pytestmark = needs_chromium


def listening(page: Page) -> Step:
    set_up_and_sign_in(page)
    listen = Step(page, "Listen to storage changes")
    listen.open()
    listen.press("Listen")
    listen.says("Listening. Publish one in a terminal: .venv/bin/flask events publish --any")
    return listen


def test_events_are_shown_as_they_arrive(page: Page, service: Service) -> None:
    listen = listening(page)
    expect(listen.answer).to_contain_text("text/event-stream")
    expect(listen.answer).to_contain_text(": keep-alive")
    publish = ("events", "publish", "--any", "--kind", "file.created", "--file-id", "41", "--json")
    published = json.loads(service.flask(*publish))
    listen.says("1 event so far.")
    shown = json.dumps(published["event"], separators=(",", ":"))
    expect(listen.answer).to_contain_text(f"data: {shown}")
    service.flask(*publish)
    listen.says("2 events so far.")
    listen.press("Stop listening")
    listen.says("Stopped after 2 events.")
    expect(listen.node).to_have_attribute("data-state", "todo")


def test_the_page_hears_that_its_session_has_ended(
    page: Page, service: Service, complaints: Complaints
) -> None:
    listen = listening(page)
    service.flask("users", "revoke-sessions", "admin")
    listen.says("The service ended the stream: its session is over")
    expect(page.locator("#account")).to_have_text("Signed out")
    expect(Step(page, "Sign in to listen").node).to_have_attribute("data-state", "todo")
    complaints.take_refusal(401)


def test_who_is_not_signed_in_is_told_so(page: Page, complaints: Complaints) -> None:
    listen = Step(page, "Listen to storage changes")
    listen.open()
    listen.press("Listen")
    listen.says("Refused with auth.token_missing: nobody is signed in.")
    expect(listen.answer).to_contain_text('"auth.token_missing"')
    complaints.take_refusal(401)
