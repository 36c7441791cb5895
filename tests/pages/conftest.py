"""Fixtures: the pages of the application, and in a real browser those of the running service."""

from collections.abc import Iterator

import pytest
from flask import Flask
from werkzeug.test import Client

from app.core.runtime import Runtime
from tests.support.browsing import complaints, loopback, page, site
from tests.support.commands import CommandLine
from tests.support.fake_provider import FakeProvider
from tests.support.initial_state import InitialState
from tests.support.launcher import Service
from tests.support.pages import Site, add_local_provider

__all__ = ["complaints", "loopback", "page", "site"]


@pytest.fixture
def web(app: Flask) -> Client:
    """A client that asks for pages, without cookies."""
    return app.test_client(use_cookies=False)


@pytest.fixture
def line(app: Flask) -> CommandLine:
    return CommandLine(app)


@pytest.fixture
def untouched(site: Site, running: tuple[Service, InitialState, Runtime]) -> Site:
    """The same without the administrator: nothing is set up."""
    running[1].restore()
    return site


@pytest.fixture
def provider(loopback: FakeProvider, site: Site) -> Iterator[FakeProvider]:
    """A provider, `Local login`, that says that its user is Jane, whom nobody knows here."""
    add_local_provider(site, loopback)
    yield loopback
    loopback.claims.clear()
