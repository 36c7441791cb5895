"""A forgotten password, and the link that replaces it."""

from collections.abc import Callable

import pytest

from tests.support.api import ApiClient
from tests.support.factories import KnownUser
from tests.support.mailbox import Mailbox
from tests.support.passwords import request


@pytest.fixture
def mailed(api: ApiClient, mailbox: Mailbox) -> Callable[[KnownUser], str]:
    """Ask for a reset of an account's password; return the token of the mail."""

    def ask(user: KnownUser) -> str:
        request(api.stranger(), user.email).ok()
        return mailbox.token(mailbox.only())

    return ask
