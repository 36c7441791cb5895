"""Streams of the running service, and the command line."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.support.factories import KnownUser
from tests.support.live import LiveClient, LiveService
from tests.support.streams import OpenStream


@pytest.fixture
def sign_in(live: LiveService, root: KnownUser) -> Iterator[Callable[[KnownUser], LiveClient]]:
    """Return clients that are signed in; they are closed in the end."""
    with ExitStack() as stack:

        def make(user: KnownUser) -> LiveClient:
            client = stack.enter_context(live.client())
            client.login(user).ok()
            return client

        yield make


@pytest.fixture
def watch(live: LiveService) -> Iterator[Callable[[LiveClient], OpenStream]]:
    """Open streams with a client's cookies; they are closed in the end."""
    with ExitStack() as stack:

        def make(client: LiveClient) -> OpenStream:
            return stack.enter_context(OpenStream(client)).opened()

        yield make
