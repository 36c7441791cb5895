"""A forgotten password, and the link that replaces it."""

from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask

from tests.support.api import Answer, ApiClient
from tests.support.commands import CommandLine
from tests.support.factories import KnownUser
from tests.support.mailbox import Mailbox

NEW = "another good password"


def request(client: ApiClient, email: str, **options: Any) -> Answer:
    return client.post("/auth/password/reset/request", {"email": email}, **options)


def confirm(client: ApiClient, token: str, new: str = NEW, **options: Any) -> Answer:
    body = {"token": token, "new_password": new}
    return client.post("/auth/password/reset/confirm", body, **options)


@pytest.fixture
def line(app: Flask) -> CommandLine:
    return CommandLine(app)


@pytest.fixture
def mailed(api: ApiClient, mailbox: Mailbox) -> Callable[[KnownUser], str]:
    """Ask for a reset of an account's password; return the token of the mail."""

    def ask(user: KnownUser) -> str:
        request(api.stranger(), user.email).ok()
        return mailbox.token(mailbox.only())

    return ask
