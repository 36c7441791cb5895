"""An installation that is ready, and invitations into it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import pytest

from app.core.access import COMMAND_LINE
from app.core.runtime import Runtime
from app.invitations import service
from tests.support.api import Answer, ApiClient

GUEST = {"username": "Guest", "password": "a good long password"}


@dataclass(frozen=True)
class Guest:
    """Somebody with an invitation."""

    client: ApiClient
    invitation_id: int
    token: str

    def path(self, token: str | None = None) -> str:
        return f"/auth/invitations/{quote(self.token if token is None else token, safe='')}"

    def look(self, token: str | None = None) -> Answer:
        return self.client.get(self.path(token))

    def accept(self, *, token: str | None = None, headers: Any = None, **changes: Any) -> Answer:
        return self.client.post(f"{self.path(token)}/accept", GUEST | changes, headers=headers)

    def elsewhere(self) -> "Guest":
        """Return the same invitation in another browser."""
        return Guest(self.client.stranger(), self.invitation_id, self.token)


@pytest.fixture(autouse=True)
def ready(admin: Any) -> None:
    """There is an administrator, and so nothing is missing."""


@pytest.fixture
def invite(rt: Runtime, api: ApiClient) -> Callable[..., Guest]:
    def make(email: str = "guest@example.com", **options: Any) -> Guest:
        made = service.create(rt, COMMAND_LINE, email=email, **options)
        return Guest(api, made.invitation.id, made.token)

    return make


@pytest.fixture
def guest(invite: Callable[..., Guest]) -> Guest:
    return invite()
