"""A provider on loopback, and an installation that may speak to it."""

from collections.abc import Callable, Iterator

import pytest
from flask import Flask

from app.core.http_client import HttpClient
from app.core.runtime import Runtime
from app.external_auth.models import Provider
from tests.support.api import ORIGIN
from tests.support.clock import FakeClock
from tests.support.commands import CommandLine
from tests.support.external import add_provider
from tests.support.factories import configure
from tests.support.fake_provider import FakeProvider


@pytest.fixture
def app(make_app: Callable[..., Flask]) -> Flask:
    """Has an address, and asks providers on this machine."""
    app = make_app(http_client=HttpClient(allow_loopback=True))
    configure(app.extensions["gatehouse"], public_site_url=[ORIGIN])
    return app


@pytest.fixture
def line(app: Flask) -> CommandLine:
    return CommandLine(app)


@pytest.fixture
def fake(clock: FakeClock) -> Iterator[FakeProvider]:
    """A provider that signs Jane in."""
    with FakeProvider(clock) as provider:
        yield provider


@pytest.fixture
def corp(rt: Runtime, fake: FakeProvider) -> Provider:
    """That provider as it is set up here, with the defaults."""
    return add_provider(rt, fake)
