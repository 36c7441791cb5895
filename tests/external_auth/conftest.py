"""A provider on loopback, and an installation that may speak to it."""

from collections.abc import Iterator

import pytest
from flask import Flask

from app.core.runtime import Runtime
from app.external_auth.models import Provider
from app.web import runtime as web_runtime
from tests.support.api import ORIGIN
from tests.support.clock import FakeClock
from tests.support.external import add_provider
from tests.support.factories import configure
from tests.support.fake_provider import FakeProvider


@pytest.fixture
def app(app: Flask) -> Iterator[Flask]:
    """Has an address, and asks providers on this machine."""
    rt = web_runtime.of(app)
    configure(rt, public_site_url=[ORIGIN])
    rt.http_client.allow_loopback = True
    yield app
    rt.http_client.allow_loopback = False


@pytest.fixture
def fake(clock: FakeClock) -> Iterator[FakeProvider]:
    """A provider that signs Jane in."""
    with FakeProvider(clock) as provider:
        yield provider


@pytest.fixture
def corp(rt: Runtime, fake: FakeProvider) -> Provider:
    """That provider as it is set up here, with the defaults."""
    return add_provider(rt, fake)
