"""Fixtures: the service as bin/serve runs it, and its reference page in a real browser."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.support.browser import CHROMIUM, FLAGS, Complaints, reference_page
from tests.support.launcher import Service


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS])
        yield browser
        browser.close()


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """A service that nobody has used yet."""
    service = Service(tmp_path / "instance")
    service.start()
    yield service
    service.close()


@pytest.fixture
def origin(service: Service) -> str:
    return f"http://localhost:{service.port}"


@pytest.fixture
def complaints() -> Complaints:
    return Complaints()


@pytest.fixture
def page(chromium: Browser, origin: str, complaints: Complaints) -> Iterator[Page]:
    """The reference page; the test fails when it complains or speaks to anybody else."""
    with reference_page(chromium, origin, complaints) as page:
        yield page
