"""The set-up on the pages /setup and /setup/storage, in a real browser."""

import pytest
import sqlalchemy as sa
from playwright.sync_api import Browser, Page, Route, expect

from app.storage_policies.models import StoragePolicyGroup
from tests.support.browser import Complaints, needs_chromium
from tests.support.factories import PASSWORD, KnownUser
from tests.support.pages import Site, fill, is_drawn, opened, send, sign_in, sign_in_by_api

pytestmark = needs_chromium

ADA = KnownUser(1, "ada", "ada@example.com", PASSWORD)


@pytest.fixture
def without_storage(site: Site) -> None:
    """The default group is switched off."""
    with site.rt.transaction() as session:
        session.execute(sa.update(StoragePolicyGroup).values(is_enabled=False))


def set_up(page: Page) -> None:
    """Fill in and send the form of the page, which is open."""
    fill(page, username="ada", email="ada@example.com", password=PASSWORD)
    send(page)


def test_whoever_opens_an_empty_installation_is_led_through_the_set_up(
    page: Page, untouched: Site, complaints: Complaints
) -> None:
    page.goto("/")
    page.wait_for_url("**/setup")
    complaints.forgive()  # the sign-in page has asked for passkeys, which need an address
    expect(page.get_by_role("heading", level=1)).to_have_text("Set up Gatehouse")
    set_up(page)
    page.wait_for_url("**/setup/storage")
    expect(page.get_by_role("heading", name="Everything is set up")).to_be_visible()
    expect(page.get_by_text(f"Links in e-mails lead to {untouched.origin}.")).to_be_visible()
    link = page.get_by_role("link", name="Protect your account")
    expect(link).to_have_attribute("href", "/settings/security")
    page.get_by_role("link", name="Continue").click()
    page.wait_for_url("**/admin/overview")
    expect(page.locator("#me")).to_contain_text(ADA.username)
    is_drawn(page)
    for path in ("/setup", "/login"):
        page.goto(path)
        page.wait_for_url("**/login")


def test_an_answer_that_comes_late_leads_nobody_away_from_the_set_up(
    page: Page, untouched: Site
) -> None:
    asked: list[Route] = []
    page.route("**/auth/check", lambda route: asked.append(route))
    done = {"code": "success", "msg": "", "data": {"setup_state": "ready"}, "error": None}

    def sign_in(route: Route) -> None:
        asked.pop().fulfill(json=done)
        route.continue_()

    page.route("**/auth/login", sign_in)
    page.goto("/setup")
    set_up(page)
    page.wait_for_url("**/setup/storage")
    page.unroute_all()
    page.reload()
    expect(page.get_by_role("heading", name="Everything is set up")).to_be_visible()


def test_of_two_who_set_up_at_once_one_is_told_to_sign_in(
    page: Page, untouched: Site, complaints: Complaints
) -> None:
    with page.expect_response("**/auth/check"):
        page.goto("/setup")
    expect(page.get_by_role("button", name="Show the password")).to_be_visible()
    account = {"username": "eve", "email": "eve@example.com", "password": PASSWORD}
    untouched.post("/auth/setup", account)
    set_up(page)
    problem = page.get_by_role("alert")
    expect(problem).to_contain_text("The set-up is finished. Please sign in.")
    complaints.take_refusal(400)
    problem.get_by_role("link", name="Go to sign-in").click()
    page.wait_for_url("**/login")


def test_without_a_storage_route_the_administrator_makes_one(
    page: Page, untouched: Site, without_storage: None
) -> None:
    page.goto("/setup")
    set_up(page)
    page.wait_for_url("**/setup/storage")
    expect(page.get_by_role("heading", name="Finish the set-up")).to_be_visible()
    page.get_by_role("button", name="Finish set-up").click()
    expect(page.get_by_role("heading", name="Everything is set up")).to_be_visible()


def test_the_end_of_the_set_up_is_for_administrators(
    page: Page, site: Site, request: pytest.FixtureRequest
) -> None:
    page.goto("/setup/storage")
    page.wait_for_url("**/login?return_path=%2Fsetup%2Fstorage")
    sign_in(page, site.ada)
    page.wait_for_url("**/setup/storage")
    expect(page.get_by_role("heading", name="Everything is set up")).to_be_visible()
    request.getfixturevalue("without_storage")
    sign_in_by_api(page, site.add("bob"))
    page.goto("/setup/storage")
    expect(page.get_by_text("An administrator has to finish the set-up.")).to_be_visible()


def test_the_set_up_at_an_address_of_digits_is_advised_against(
    chromium: Browser, untouched: Site
) -> None:
    numeric = untouched.numeric_origin
    with opened(chromium, numeric, Complaints(), untouched.origin) as page:
        page.goto("/setup")
        page.get_by_role("link", name=untouched.origin).click()
        page.wait_for_url(untouched.origin + "/setup")
        expect(page.get_by_role("heading", name="Set up Gatehouse")).to_be_visible()
