"""External sign-in on the reference page, with a provider on loopback (README)."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from app.core.clock import Clock
from tests.support.browser import Complaints, Step, needs_chromium, reference_page
from tests.support.fake_provider import CLIENT_ID, CLIENT_SECRET, FakeProvider
from tests.support.launcher import Service

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def provider() -> Iterator[FakeProvider]:
    with FakeProvider(Clock()) as provider:
        yield provider


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, provider: FakeProvider) -> Iterator[Service]:
    """A service as the README has it."""
    service = Service(tmp_path_factory.mktemp("external") / "instance")
    service.start(ALLOW_LOOPBACK_HTTP="1")
    account = {"username": "ada", "email": "ada@example.com", "password": "correct horse"}
    service.post("/api/v1/auth/setup", **account)
    words = ["external-auth", "add", "oidc", "--key", "local", "--name", "Local login"]
    words += ["--client-id", CLIENT_ID, f"--client-secret={CLIENT_SECRET}"]
    words += ["--issuer-url", provider.issuer, "--auto-provision"]
    service.flask(*words)
    yield service
    service.close()


@pytest.fixture
def page(
    chromium: Browser, origin: str, complaints: Complaints, provider: FakeProvider
) -> Iterator[Page]:
    with reference_page(chromium, origin, complaints, provider.issuer) as page:
        yield page


def sign_in(page: Page) -> None:
    """Leave for the provider, and come back."""
    step = Step(page, "Sign in with a provider")
    step.open()
    step.press("List the providers")
    step.says("Choose one")
    with page.expect_navigation(url="**/api/v1/docs#external-sign-in"):
        step.press("Sign in with Local login")


def test_a_browser_goes_to_the_provider_and_comes_back(
    page: Page, provider: FakeProvider, complaints: Complaints
) -> None:
    for _ in range(2):
        sign_in(page)
        notice = page.locator("#external-sign-in .notice")
        expect(notice).to_have_text("Back from Local login, and signed in.")
        step = Step(page, "Sign in with a provider").node
        expect(step).to_have_attribute("data-state", "settled")
        names = {cookie["name"] for cookie in page.context.cookies()}
        assert names == {"service_access", "service_refresh", "service_csrf"}
        who = Step(page, "See who you are")
        who.open()
        who.press("Show")
        who.says("Signed in as “jane”.")
    links = Step(page, "See and remove links")
    links.open()
    links.press("List")
    links.says("1 link.")
    expect(links.node.get_by_role("cell", name="jane@example.com")).to_be_visible()
    links.press("Remove Local login")
    links.says("This is the only way to sign in to the account.")
    complaints.take_refusal(409)
    page.reload()
    expect(page.get_by_role("heading", name="External sign-in")).to_be_visible()
    expect(notice).to_have_count(0)  # that was then


def test_a_browser_that_was_refused_is_told_so(
    page: Page, provider: FakeProvider, origin: str, complaints: Complaints
) -> None:
    provider.claims["aud"] = "somebody else"
    try:
        step = Step(page, "Sign in with a provider")
        step.open()
        step.press("List the providers")
        expected = f"{origin}/login?external_auth=error&code=auth.credentials_failed"
        with page.expect_navigation(url=expected):
            step.press("Sign in with Local login")
    finally:
        provider.claims.clear()
    assert page.context.cookies() == []
    page.goto(f"{origin}/api/v1/docs?external_auth=error&code=auth.credentials_failed")
    notice = page.locator("#external-sign-in .notice")
    expect(notice).to_have_text("The sign-in was refused with auth.credentials_failed.")
    # Whoever makes up a link does not get to say anything here.
    page.goto(f"{origin}/api/v1/docs?external_auth=error&code=nothing. Call 555-0100 now")
    expect(notice).to_have_text("The sign-in was refused with no code.")
    page.goto(expected)
    page.wait_for_load_state("networkidle")
    complaints.texts.clear()  # that page is the frontend's, which is not there
