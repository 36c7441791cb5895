"""Passkeys on the reference page: Chromium's WebAuthn with a virtual authenticator."""

import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.support.browser import (
    CHROMIUM,
    DOCS,
    FLAGS,
    Complaints,
    Step,
    needs_chromium,
    reference_page,
)
from tests.support.launcher import Service
from tests.support.smtp import Authority
from tests.support.tls_front import TlsFront
from tests.support.virtual_authenticator import VirtualAuthenticator

PASSWORD = "a first password"
NUMBERS = itertools.count()
BROWSER_GAVE_NONE = "The browser gave no passkey"

pytestmark = needs_chromium

SetSite = Callable[..., None]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One service for all, set up by a script at the address that bin/serve prints."""
    service = Service(tmp_path_factory.mktemp("passkeys") / "instance")
    service.start()
    service.post("/api/v1/auth/setup", **account("admin"))
    yield service
    service.close()


@pytest.fixture
def ann(service: Service) -> str:
    """The name of a new account, which nobody has used yet."""
    name = f"ann{next(NUMBERS)}"
    service.post("/api/v1/auth/register", **account(name))
    return name


def account(name: str) -> dict[str, str]:
    return {"username": name, "email": f"{name}@example.com", "password": PASSWORD}


@pytest.fixture
def site(service: Service, origin: str) -> Iterator[SetSite]:
    """Sets the site's addresses; afterwards they are what they were."""

    def set_site(*origins: str) -> None:
        service.flask("config", "set", "public_site_url", json.dumps(origins))

    yield set_site
    set_site(origin)


@pytest.fixture
def authenticator(page: Page) -> VirtualAuthenticator:
    return VirtualAuthenticator(page)


def sign_in_with_password(page: Page, name: str) -> None:
    login = Step(page, "Sign in with the password")
    login.open()
    login.fill("Username or e-mail", name)
    login.fill("Password", PASSWORD)
    login.press("Sign in")
    login.says("Signed in.")
    login.press("Next: Create a passkey")


def create_passkey(page: Page, name: str) -> Step:
    create = Step(page, "Create a passkey")
    create.fill("Name", name)
    create.press("Create")
    return create


def have_passkey(page: Page, name: str) -> None:
    sign_in_with_password(page, name)
    create_passkey(page, "Laptop").says("“Laptop” is a passkey of this account")


def forget_session(page: Page) -> None:
    page.context.clear_cookies()
    page.reload()
    expect(page.locator("#account")).to_have_text("Signed out")


def sign_in_with_passkey(page: Page) -> Step:
    login = Step(page, "Sign in with a passkey")
    login.open()
    login.press("Sign in with a passkey")
    return login


def is_signed_in_as(page: Page, name: str) -> None:
    expect(page.locator("#account")).to_have_text("Signed in")
    me = Step(page, "Who am I?")
    me.open()
    me.press("Ask")
    me.says(f"You are {name}, role user.")


def change_answer(page: Page, path: str, change: Callable[[dict], None]) -> None:
    """Let the page see another answer than the service gave, as a tampered page would."""

    def answer(route: Route) -> None:
        response = route.fetch()
        body = response.json()
        change(body["data"]["public_key"]["publicKey"])
        route.fulfill(response=response, json=body)

    page.route(f"**/api/v1/auth/passkeys/{path}", answer)


def ask_for_no_verification(options: dict) -> None:
    options["authenticatorSelection"]["userVerification"] = "discouraged"
    del options["extensions"]["credentialProtectionPolicy"]


def ask_for_no_passkey(options: dict) -> None:
    selection = options["authenticatorSelection"]
    selection.update(residentKey="discouraged", requireResidentKey=False)


def test_a_passkey_is_created_and_signs_in(
    page: Page, ann: str, authenticator: VirtualAuthenticator
) -> None:
    sign_in_with_password(page, ann)
    create = create_passkey(page, "Laptop")
    create.says("“Laptop” is a passkey of this account")
    expect(create.request.first).to_contain_text("X-CSRF-Token")
    (passkey,) = authenticator.passkeys
    assert passkey["isResidentCredential"]
    assert (passkey["rpId"], passkey["userName"]) == ("localhost", ann)

    forget_session(page)
    login = sign_in_with_passkey(page)
    login.says("Signed in by passkey")
    expect(login.request.first).not_to_contain_text("identifier")
    is_signed_in_as(page, ann)

    passkeys = Step(page, "See and remove passkeys")
    passkeys.open()
    passkeys.press("List")
    passkeys.says("1 passkey.")
    expect(passkeys.node.locator("tbody tr")).to_contain_text("Laptop")
    expect(passkeys.node.locator("tbody tr")).not_to_contain_text("never")


def test_a_passkey_picked_among_a_fields_suggestions_signs_in(
    page: Page, ann: str, authenticator: VirtualAuthenticator
) -> None:
    have_passkey(page, ann)
    page.add_init_script(
        "const get = CredentialsContainer.prototype.get;"
        "CredentialsContainer.prototype.get = function (options) {"
        "  window.mediation = options.mediation; return get.call(this, options); };"
    )
    forget_session(page)
    authenticator.withhold_presence()
    autofill = Step(page, "Sign in from a field's suggestions")
    autofill.open()
    expect(autofill.field("Username or e-mail")).to_have_attribute(
        "autocomplete", "username webauthn"
    )
    autofill.press("Offer passkeys in the field")
    autofill.says("Waiting")
    assert page.evaluate("window.mediation") == "conditional"
    autofill.press("Stop waiting")
    autofill.says("Stopped.")

    authenticator.grant_presence()
    autofill.press("Offer passkeys in the field")
    autofill.says("Signed in by passkey")
    is_signed_in_as(page, ann)


def test_a_form_that_waits_does_not_keep_the_button_from_working(
    page: Page, ann: str, authenticator: VirtualAuthenticator
) -> None:
    have_passkey(page, ann)
    authenticator.withhold_presence()
    autofill = Step(page, "Sign in from a field's suggestions")
    autofill.open()
    autofill.press("Offer passkeys in the field")
    autofill.says("Waiting")

    def touch(route: Route) -> None:  # for the button, and no sooner
        authenticator.grant_presence()
        route.continue_()

    page.route("**/passkeys/login/start", touch)
    sign_in_with_passkey(page).says("Signed in by passkey")
    autofill.says("Stopped.")


def test_stopping_counts_while_the_service_is_asked(
    page: Page, ann: str, authenticator: VirtualAuthenticator
) -> None:
    have_passkey(page, ann)
    asked: list[Route] = []
    page.route("**/passkeys/login/start", lambda route: asked.append(route))
    for title, action, stop in (
        ("Sign in with a passkey", "Sign in with a passkey", "Stop"),
        ("Sign in from a field's suggestions", "Offer passkeys in the field", "Stop waiting"),
    ):
        login = Step(page, title)
        login.open()
        with page.expect_request("**/passkeys/login/start"):
            login.press(action)
        login.press(stop)
        asked.pop().continue_()
        login.says("Stopped.")


def test_a_form_that_waits_for_long_gets_a_new_challenge(
    page: Page, ann: str, authenticator: VirtualAuthenticator
) -> None:
    have_passkey(page, ann)
    authenticator.withhold_presence()
    page.clock.install()
    autofill = Step(page, "Sign in from a field's suggestions")
    autofill.open()
    with page.expect_response("**/passkeys/login/start") as first:
        autofill.press("Offer passkeys in the field")
        autofill.says("Waiting")
    with page.expect_response("**/passkeys/login/start") as second:
        page.clock.fast_forward("04:45")
    flows = [answer.value.json()["data"]["flow_id"] for answer in (first, second)]
    assert flows[0] != flows[1]


def test_an_authenticator_takes_part_once(
    page: Page, ann: str, authenticator: VirtualAuthenticator
) -> None:
    have_passkey(page, ann)
    create_passkey(page, "Again").says("This authenticator already holds a passkey")
    assert len(authenticator.passkeys) == 1

    authenticator.remove()
    VirtualAuthenticator(page)
    create_passkey(page, "Phone").says("“Phone” is a passkey of this account")
    passkeys = Step(page, "See and remove passkeys")
    passkeys.open()
    passkeys.press("List")
    passkeys.says("2 passkeys.")


def test_who_is_not_verified_gets_no_passkey(page: Page, ann: str, complaints: Complaints) -> None:
    authenticator = VirtualAuthenticator(page, can_verify=False)
    sign_in_with_password(page, ann)
    create_passkey(page, "Laptop").says(BROWSER_GAVE_NONE)

    change_answer(page, "register/start", ask_for_no_verification)
    create_passkey(page, "Laptop").says("Refused with auth.credentials_failed")
    assert len(authenticator.passkeys) == 1  # the browser was fooled, the service was not
    complaints.take_refusal(401)


def test_a_key_that_does_not_tell_its_owner_is_no_passkey(
    page: Page, ann: str, authenticator: VirtualAuthenticator, complaints: Complaints
) -> None:
    sign_in_with_password(page, ann)
    change_answer(page, "register/start", ask_for_no_passkey)
    create_passkey(page, "Laptop").says("Refused with passkey.not_discoverable")
    complaints.take_refusal(400)


def test_who_is_not_verified_does_not_sign_in(
    page: Page, ann: str, authenticator: VirtualAuthenticator, complaints: Complaints
) -> None:
    have_passkey(page, ann)
    forget_session(page)
    authenticator.fail_user_verification()
    sign_in_with_passkey(page).says(BROWSER_GAVE_NONE)

    change_answer(
        page, "login/start", lambda options: options.update(userVerification="discouraged")
    )
    login = Step(page, "Sign in with a passkey")
    login.press("Sign in with a passkey")
    login.says("Refused with auth.credentials_failed")
    expect(page.locator("#account")).to_have_text("Signed out")
    complaints.take_refusal(401)


def test_a_removed_passkey_signs_nobody_in(
    page: Page, ann: str, authenticator: VirtualAuthenticator, complaints: Complaints
) -> None:
    have_passkey(page, ann)
    passkeys = Step(page, "See and remove passkeys")
    passkeys.open()
    passkeys.press("List")
    passkeys.press("Remove Laptop")
    passkeys.says("“Laptop” is removed")
    expect(passkeys.node.locator("tbody tr")).to_have_count(0)
    forget_session(page)
    assert len(authenticator.passkeys) == 1  # the browser still offers it
    sign_in_with_passkey(page).says("Refused with auth.credentials_failed")
    expect(page.locator("#account")).to_have_text("Signed out")
    complaints.take_refusal(401)


def test_browsers_without_json_methods_are_helped(
    page: Page, ann: str, authenticator: VirtualAuthenticator
) -> None:
    page.add_init_script(
        "delete PublicKeyCredential.parseCreationOptionsFromJSON;"
        "delete PublicKeyCredential.parseRequestOptionsFromJSON;"
        "delete PublicKeyCredential.prototype.toJSON;"
    )
    page.reload()
    have_passkey(page, ann)
    create_passkey(page, "Again").says("This authenticator already holds a passkey")
    forget_session(page)
    sign_in_with_passkey(page).says("Signed in by passkey")


def test_creating_a_passkey_wants_a_session(page: Page, ann: str, complaints: Complaints) -> None:
    create = Step(page, "Create a passkey")
    create.open()
    create.press("Create")
    create.says("Refused with auth.token_missing: nobody is signed in.")
    complaints.take_refusal(401)

    sign_in_with_password(page, ann)
    page.context.clear_cookies(name="service_access")  # as the browser does when its time is over
    create.press("Create")
    create.says("Refused with auth.token_missing: the access token has expired")
    complaints.take_refusal(401)


def test_a_step_that_waits_shows_no_earlier_failure(
    page: Page, ann: str, authenticator: VirtualAuthenticator, complaints: Complaints
) -> None:
    create = Step(page, "Create a passkey")
    create.open()
    create.press("Create")
    create.says("nobody is signed in.")
    complaints.take_refusal(401)
    expect(create.node).to_have_attribute("data-state", "failed")
    sign_in_with_password(page, ann)
    authenticator.withhold_presence()
    create.press("Create")
    expect(create.node).to_contain_text("2. In the browser")
    expect(create.node).to_have_attribute("data-state", "todo")
    expect(create.node.locator(".outcome")).to_have_text("")
    create.press("Stop")
    create.says("Stopped.")


def test_a_page_of_another_site_says_so(
    page: Page, ann: str, authenticator: VirtualAuthenticator, site: SetSite, origin: str
) -> None:
    sign_in_with_password(page, ann)
    site("https://cloud.example.com", origin)
    create_passkey(page, "Laptop").says("Passkeys here belong to cloud.example.com")


def test_hosts_below_the_first_one_share_its_passkeys(
    chromium: Browser, service: Service, ann: str, site: SetSite, tmp_path: Path
) -> None:
    site("https://example.com", "https://cloud.example.com")
    tls = Authority(tmp_path).server("example.com")
    with TlsFront(tls, service.port) as front:
        flags = [
            *FLAGS,
            f"--host-resolver-rules=MAP *example.com:443 127.0.0.1:{front.port}",
            "--ignore-certificate-errors",
        ]
        with chromium.browser_type.launch(executable_path=CHROMIUM, args=flags) as browser:
            page = browser.new_page()
            page.goto(f"https://example.com{DOCS}")
            authenticator = VirtualAuthenticator(page)
            have_passkey(page, ann)
            page.goto(f"https://cloud.example.com{DOCS}")
            sign_in_with_passkey(page).says("Signed in by passkey")
            is_signed_in_as(page, ann)
            (passkey,) = authenticator.passkeys
            assert passkey["rpId"] == "example.com"

            page.goto(f"https://other.example.com{DOCS}")  # the browser would, the service does not
            sign_in_with_passkey(page).says("Refused with auth.request_origin_untrusted")


def test_the_address_of_the_panel_leads_to_it(page: Page, origin: str) -> None:
    page.goto("about:blank")
    page.goto(f"{origin}{DOCS}#passkeys")
    heading = page.get_by_role("heading", name="Passkeys", exact=True)
    expect(heading).to_be_in_viewport()
    box = heading.bounding_box()
    assert box is not None
    assert 0 < box["y"] < 120  # right below the bar


def test_a_page_at_an_address_leads_to_its_name(
    chromium: Browser, service: Service, origin: str, complaints: Complaints
) -> None:
    with reference_page(chromium, service.url, complaints) as page:
        notice = page.locator("#passkeys .notice")
        expect(notice).to_contain_text("Passkeys belong to a host name, not to an address.")
        expect(notice.get_by_role("link")).to_have_attribute(
            "href", f"{origin}/api/v1/docs#passkeys"
        )


def test_a_page_at_an_address_that_is_not_the_sites_leads_there(
    page: Page, ann: str, site: SetSite, origin: str
) -> None:
    notice = page.locator("#passkeys .notice")
    expect(notice).to_be_hidden()
    site("http://localhost:1", "https://cloud.example.com")  # the port belongs to an origin
    Step(page, "Create a passkey").open()
    expect(notice).to_contain_text(f"Passkeys of this site do not work at {origin}.")
    links = notice.get_by_role("link")
    assert links.evaluate_all("links => links.map((link) => link.href)") == [
        "http://localhost:1/api/v1/docs#passkeys",
        "https://cloud.example.com/api/v1/docs#passkeys",
    ]
    site(origin)
    Step(page, "See and remove passkeys").open()
    expect(notice).to_be_hidden()
