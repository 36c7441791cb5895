"""Fixtures: the pages of the application, and in a real browser those of the running service."""

from collections.abc import Iterator

import pytest
from flask import Flask
from playwright.sync_api import Browser, Page
from werkzeug.test import Client

from app.core.clock import Clock
from app.core.runtime import Runtime
from tests.support.browser import Complaints, launched
from tests.support.commands import CommandLine
from tests.support.fake_provider import CLIENT_ID, CLIENT_SECRET, FakeProvider
from tests.support.initial_state import InitialState
from tests.support.launcher import Service
from tests.support.pages import Site, opened


@pytest.fixture
def web(app: Flask) -> Client:
    """A client that asks for pages, without cookies."""
    return app.test_client(use_cookies=False)


@pytest.fixture
def line(app: Flask) -> CommandLine:
    return CommandLine(app)


@pytest.fixture(scope="module")  # Playwright runs once at a time
def chromium() -> Iterator[Browser]:
    with launched() as browser:
        yield browser


@pytest.fixture(scope="session")
def running(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Service, InitialState, Runtime]]:
    """The service that bin/serve runs, without limits of requests."""
    folder = tmp_path_factory.mktemp("pages")
    service = Service(folder / "instance")
    service.start(RATE_LIMITS="off", ALLOW_LOOPBACK_HTTP="1", TRUSTED_PROXIES="127.0.0.1")
    rt = service.observer(folder / "observer")
    yield service, InitialState(rt), rt
    rt.close()
    service.close()


@pytest.fixture
def site(running: tuple[Service, InitialState, Runtime]) -> Site:
    """A service with an administrator, `ada`, and nothing else."""
    service, initial_state, rt = running
    initial_state.restore()
    return Site(service, rt)


@pytest.fixture
def untouched(site: Site, running: tuple[Service, InitialState, Runtime]) -> Site:
    """The same without the administrator: nothing is set up."""
    running[1].restore()
    return site


@pytest.fixture
def complaints() -> Complaints:
    return Complaints()


@pytest.fixture
def page(chromium: Browser, site: Site, complaints: Complaints) -> Iterator[Page]:
    """A page of a new browser profile; the test fails when it complains or speaks to others."""
    with opened(chromium, site.origin, complaints) as page:
        yield page


@pytest.fixture(scope="module")
def loopback() -> Iterator[FakeProvider]:
    with FakeProvider(Clock()) as provider:
        yield provider


@pytest.fixture
def provider(loopback: FakeProvider, site: Site) -> Iterator[FakeProvider]:
    """A provider, `Local login`, that says that its user is Jane, whom nobody knows here."""
    words = ["external-auth", "add", "oidc", "--key", "local", "--name", "Local login"]
    words += ["--client-id", CLIENT_ID, f"--client-secret={CLIENT_SECRET}"]
    site.flask(*words, "--issuer-url", loopback.issuer)
    yield loopback
    loopback.claims.clear()
