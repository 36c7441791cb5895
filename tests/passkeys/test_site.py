"""Which site passkeys belong to."""

import pytest

from app.core.access import COMMAND_LINE
from app.settings import changes as settings
from tests.support.api import ApiClient
from tests.support.factories import configure
from tests.support.passkeys import (
    Authenticator,
    finish_login,
    finish_registration,
    log_in,
    register,
    start_login,
    start_registration,
)

pytestmark = pytest.mark.usefixtures("site")

REQUIRED = 400, "config.public_site_url_required"
INVALID = 400, "config.public_site_url_invalid"


def four_answers(client: ApiClient, device: Authenticator):
    """Ask for every start and every finish."""
    yield client.post("/auth/passkeys/register/start", {"name": "x" * 129})
    yield finish_registration(client, "unknown", {})
    yield client.post("/auth/passkeys/login/start", {})
    yield finish_login(client, "unknown", {})


def test_without_an_address_nothing_starts_or_finishes(rt, signed_in, device):
    configure(rt, public_site_url=[])
    for answer in four_answers(signed_in, device):
        answer.fails(*REQUIRED)


def test_an_address_browsers_offer_no_passkeys_at_is_told(rt, signed_in, device):
    for first in (
        "http://files.example",
        "http://localhost.evil.example",
        "http://127.0.0.1:8000",
        "http://[::1]",
        "https://192.0.2.7",
        "https://[2001:db8::1]",
        "https://0x7f.1",
        "https://10.1",
        "https://1.2.3.0x4",
    ):
        configure(rt, public_site_url=[first, "https://files.example"])
        for answer in four_answers(signed_in, device):
            assert (answer.status, answer.code) == INVALID, first


def test_the_host_of_the_first_address_is_the_relying_party(rt, signed_in):
    for address, rp_id, origin in (
        ("http://localhost:8000", "localhost", "http://localhost:8000"),
        ("https://localhost", "localhost", "https://localhost"),
        ("https://Files.Example", "files.example", "https://files.example"),
        ("https://files.example:8443", "files.example", "https://files.example:8443"),
        ("https://files.example:443", "files.example", "https://files.example"),
        ("https://files.example:0443", "files.example", "https://files.example"),
        ("http://localhost:80", "localhost", "http://localhost"),
        ("https://xn--bcher-kva.example", "xn--bcher-kva.example", "https://xn--bcher-kva.example"),
        ("https://intranet", "intranet", "https://intranet"),
        ("https://1.example", "1.example", "https://1.example"),
    ):
        configure(rt, public_site_url=[address])
        options = start_registration(signed_in)["public_key"]["publicKey"]
        assert options["rp"] == {"name": "Gatehouse", "id": rp_id}
        assert start_login(signed_in)["public_key"]["publicKey"]["rpId"] == rp_id
        device = Authenticator(origin)
        assert register(signed_in, device).status == 200, address
        assert log_in(signed_in.stranger(), device).status == 200, address


def test_every_address_of_the_site_is_an_origin(rt, signed_in):
    origins = ["https://files.example", "https://www.files.example:8443", "https://files.test"]
    configure(rt, public_site_url=origins)
    for origin in origins:
        device = Authenticator(origin)
        register(signed_in, device).ok()
        log_in(signed_in.stranger(), device).ok()


def test_any_other_origin_is_refused(rt, signed_in):
    configure(rt, public_site_url=["https://files.example"])
    device = Authenticator("https://files.example")
    register(signed_in, device).ok()
    for origin in (
        "https://www.files.example",
        "https://files.example:8443",
        "http://files.example",
        "https://files.example.evil.example",
        "https://evil.example",
        "https://files.example:443",
        "https://files.example/",
        "HTTPS://FILES.EXAMPLE",
        "files.example",
        "null",
        "",
        "android:apk-key-hash:x",
    ):
        changes = {"client_data": {"origin": origin}}
        for answer in (
            register(signed_in, Authenticator(), **changes),
            log_in(signed_in.stranger(), device, **changes),
        ):
            assert (answer.status, answer.code) == (401, "auth.credentials_failed"), origin


def test_a_changed_address_is_in_force_at_once(rt, signed_in, device, passkey):
    configure(rt, public_site_url=["https://files.example"])
    log_in(signed_in.stranger(), device).fails(401, "auth.credentials_failed")
    configure(rt, public_site_url=["http://localhost"])
    log_in(signed_in.stranger(), device).ok()


def test_the_site_is_called_by_its_title_or_else_by_its_host(rt, signed_in):
    for title, name in (("Ada & Co", "Ada & Co"), ("", "localhost")):
        configure(rt, branding_title=title)
        options = start_registration(signed_in)["public_key"]["publicKey"]
        assert options["rp"]["name"] == name


def test_the_address_learnt_at_set_up_does_for_passkeys(rt, browser):
    """The default run needs no configuration."""
    settings.change(rt, COMMAND_LINE, {}, ["public_site_url"])
    browser.sign_up_admin().ok(201)
    browser.login("admin", "correct horse battery").ok()
    device = Authenticator()
    register(browser, device).ok()
    log_in(browser.stranger(), device).ok()
