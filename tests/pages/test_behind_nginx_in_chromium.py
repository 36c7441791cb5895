"""Signing in behind nginx, as deploy/nginx configures it, in a real browser."""

import http.client
import itertools
import ssl
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from app.core.runtime import Runtime
from app.pages.files import all_files
from deploy.bed.proxy import Proxy, find_nginx
from tests.support.browser import Complaints, needs_chromium
from tests.support.challenge import give_totp
from tests.support.images import encoded, quarters
from tests.support.initial_state import InitialState
from tests.support.launcher import Service
from tests.support.leaks import watch
from tests.support.pages import Site, fill, is_signed_in, opened, send, sign_in
from tests.support.servers import NotStarted
from tests.support.smtp import HOST

pytestmark = needs_chromium

NEW = "another good password"
OF_EACH_ANSWER = {"server", "date", "connection", "x-request-id"}
OF_NGINX = {"strict-transport-security": "max-age=63072000"}

Answer = tuple[int, dict[str, str], bytes]


@pytest.fixture(scope="module")
def nginx(
    tmp_path_factory: pytest.TempPathFactory, running: tuple[Service, InitialState, Runtime]
) -> Iterator[Proxy]:
    """An nginx in front of the service; its logs may tell no secret."""
    try:
        find_nginx()
    except NotStarted as reason:
        pytest.skip(str(reason))
    folder = tmp_path_factory.mktemp("nginx")
    proxy = Proxy(folder / "proxy", [running[0].port], folder)
    proxy.start()
    yield proxy
    proxy.stop()
    assert watch.leaks_of(proxy.access_log, proxy.error_log) == []


@pytest.fixture
def site(site: Site, nginx: Proxy) -> Site:
    """The service, whose only address is that of nginx."""
    site.origin = nginx.url
    site.configure(public_site_url=[site.origin], auth_cookie_secure=True)
    return site


@pytest.fixture
def page(chromium: Browser, site: Site, complaints: Complaints) -> Iterator[Page]:
    """A page that takes the certificate of an authority that the browser does not know."""
    with opened(chromium, site.origin, complaints, ignore_https_errors=True) as page:
        yield page


def test_people_sign_in_by_password_and_second_factor_and_work(
    page: Page, site: Site, complaints: Complaints, tmp_path: Path
) -> None:
    page.goto("/login")
    protocol = "performance.getEntriesByType('navigation')[0].nextHopProtocol"
    assert page.evaluate(protocol) == "h2"
    app = give_totp(site.rt, site.ada).app
    sign_in(page, site.ada, "a wrong password")
    expect(page.get_by_role("alert")).to_be_visible()
    complaints.take_refusal(401)
    sign_in(page, site.ada)
    page.get_by_label("Code from your authenticator app").fill(app.code(1))
    page.get_by_role("button", name="Continue").click()
    is_signed_in(page, site.ada)
    cookies = page.context.cookies()
    assert len(cookies) >= 3
    assert [cookie["name"] for cookie in cookies if not cookie["secure"]] == []
    # The account.
    fill(page, display_name="Ada L.")
    page.keyboard.press("Enter")
    expect(page.locator("#me")).to_contain_text("Ada L.")
    picture = tmp_path / "picture.png"
    picture.write_bytes(encoded(quarters((600, 400))))
    page.locator("#picture-file").set_input_files(picture)
    page.get_by_role("dialog").get_by_role("button", name="Use this").click()
    expect(page.locator("#me img")).to_have_js_property("naturalWidth", 512)
    page.goto("/settings/data")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download archive").click()
    assert download.value.path().read_bytes().startswith(b"PK")
    # The console.
    page.goto("/admin/users")
    expect(page.get_by_role("row").filter(has_text="ada@example.com")).to_have_count(1)
    page.goto("/admin/audit")
    page.get_by_role("button", name="Export", exact=True).click()
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV").click()
    assert "user_update_profile" in download.value.path().read_text()


def test_a_forgotten_password_is_replaced(page: Page, site: Site) -> None:
    page.goto("/reset-password")
    fill(page, email=site.ada.email)
    send(page)
    expect(page.get_by_role("heading", name="Check your mailbox")).to_be_focused()
    page.goto(site.mailed())
    expect(page.get_by_role("heading", name="Choose a new password")).to_be_visible()
    fill(page, new_password=NEW)
    send(page)
    page.wait_for_url("**/login?reset=1")
    sign_in(page, site.ada, NEW)
    is_signed_in(page, site.ada)


def answer_of(connection: http.client.HTTPConnection, path: str, **headers: str) -> Answer:
    """Return status, headers and body; without the headers that belong to a connection."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    with closing(connection):
        connection.request("GET", path, headers=sent)
        answer = connection.getresponse()
        found = {name.lower(): value for name, value in answer.getheaders()}
        kept = {name: found[name] for name in found.keys() - OF_EACH_ANSWER}
        return answer.status, kept, answer.read()


PATHS = [
    "/login", f"/pages/{all_files().version}/base/api.js", "/pages/old/base/api.js",
    "/pages/theme.css", "/settings/nothing", "/pages/none.js", "/",
]  # fmt: skip


def test_nginx_changes_nothing_about_an_answer(
    site: Site, running: tuple[Service, InitialState, Runtime], nginx: Proxy
) -> None:
    tls = ssl.create_default_context(cafile=nginx.certificate)

    def through_nginx(path: str, **headers: str) -> Answer:
        return answer_of(
            http.client.HTTPSConnection(HOST, nginx.port, context=tls), path, **headers
        )

    def from_service(path: str, **headers: str) -> Answer:
        told = {"X_Forwarded_Proto": "https", "Host": f"{HOST}:{nginx.port}", **headers}
        connection = http.client.HTTPConnection("127.0.0.1", running[0].port)
        status, found, body = answer_of(connection, path, **told)
        return status, found | OF_NGINX, body

    site.follows(f'data-origin="{site.origin}"')
    for path, encoding in itertools.product(PATHS, ("identity", "gzip")):
        found = through_nginx(path, Accept_Encoding=encoding)
        assert found == from_service(path, Accept_Encoding=encoding), (path, encoding)
        again = {"Accept_Encoding": encoding, "If_None_Match": found[1].get("etag", '"none"')}
        unchanged = through_nginx(path, **again)
        assert unchanged == from_service(path, **again), (path, encoding)
        assert (unchanged[0] == 304) == (found[0] == 200), (path, encoding)
