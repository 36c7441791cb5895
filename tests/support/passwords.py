"""Password changes, and resets of forgotten passwords."""

from typing import Any

from app.core.access import Principal
from app.core.client import Client
from app.core.runtime import Runtime
from app.passwords import service
from tests.support.api import Answer, ApiClient

NEW = "another good password"


def request(client: ApiClient, email: str, **options: Any) -> Answer:
    return client.post("/auth/password/reset/request", {"email": email}, **options)


def confirm(client: ApiClient, token: str, new: str = NEW, **options: Any) -> Answer:
    body = {"token": token, "new_password": new}
    return client.post("/auth/password/reset/confirm", body, **options)


def change(client: ApiClient, current: str, new: str = NEW, **options: Any) -> Answer:
    body = {"current_password": current, "new_password": new}
    return client.put("/auth/password", body, **options)


def change_late(rt: Runtime, principal: Principal, current: str) -> Any:
    """Change the password as a request whose access check is out of date."""
    return service.change_password(
        rt,
        principal,
        current_password=current,
        new_password=NEW,
        client=Client.of("127.0.0.1", None),
    )
