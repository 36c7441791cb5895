"""Fixtures of tests in a real browser: one running service, and a page that looks at it.

The browser and the service are started once per worker of the suite. The conftest.py of an area
imports the others that its tests need.
"""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from app.core.clock import Clock
from app.core.runtime import Runtime
from tests.support.browser import Complaints, launched
from tests.support.fake_provider import FakeProvider
from tests.support.initial_state import InitialState
from tests.support.launcher import Service
from tests.support.pages import Site, opened

__all__ = ["chromium", "complaints", "loopback", "page", "running", "site"]


@pytest.fixture(scope="session")  # Playwright runs once at a time
def chromium() -> Iterator[Browser]:
    with launched() as browser:
        yield browser


@pytest.fixture(scope="session")
def running(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Service, InitialState, Runtime]]:
    """The service that bin/serve runs, without limits of requests; passwords cost it little."""
    folder = tmp_path_factory.mktemp("pages")
    service = Service(folder / "instance")
    # With a single worker, a change of settings that has been seen once is seen from then on.
    quick = {"WORKERS": "1", "RATE_LIMITS": "off", "ARGON2": "8/1/1", "RESPONSE_FLOOR_MS": "0"}
    service.start(ALLOW_LOOPBACK_HTTP="1", TRUSTED_PROXIES="127.0.0.1", **quick)
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
