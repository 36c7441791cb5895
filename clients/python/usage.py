"""What a program does with the generated client; its types show that the description fits.

`python usage.py http://127.0.0.1:8000` does it all on a service that has no account yet.
"""

import sys
from collections.abc import Iterator
from io import BytesIO
from typing import Protocol

from gatehouse_client import AuthenticatedClient, models
from gatehouse_client.api.access_tokens import create_token
from gatehouse_client.api.administration import admin_list_users
from gatehouse_client.api.avatars import upload_avatar
from gatehouse_client.api.login import login
from gatehouse_client.api.profile import get_me
from gatehouse_client.api.sessions import refresh_session
from gatehouse_client.api.setup import create_first_administrator
from gatehouse_client.types import File

Scope = models.CreateTokenBodyScopesItem
PAGE = 50
# A picture of one white pixel.
PICTURE = bytes.fromhex("47494638376101000100800000ffffffffffff2c00000000010001000002024401003b")


class Answer(Protocol):
    """What all refusals have; each route's own type names the codes it may have."""

    @property
    def code(self) -> str:
        """What went wrong, for programs."""

    @property
    def msg(self) -> str:
        """The same for people."""


class Refused(Exception):
    """A refusal; None is an answer that the description does not know, such as a proxy's."""

    def __init__(self, answer: Answer | None) -> None:
        super().__init__(answer and answer.msg)
        self.code = str(answer.code) if answer else ""


def session_at(url: str) -> AuthenticatedClient:
    """Return a client that signs in; from then on its cookies say who it is, and not a token."""
    return AuthenticatedClient(base_url=url, token="", prefix="", raise_on_unexpected_status=True)


def program_at(url: str, token: str) -> AuthenticatedClient:
    """Return a client that has an access token (`gth_...`)."""
    return AuthenticatedClient(base_url=url, token=token, raise_on_unexpected_status=True)


def set_up(client: AuthenticatedClient, name: str, email: str, password: str) -> None:
    """Create the first administrator."""
    body = models.NewAccountBody(username=name, email=email, password=password)
    answer = create_first_administrator.sync(client=client, body=body)
    if not isinstance(answer, models.UserAnswer):
        raise Refused(answer)


def sign_in(client: AuthenticatedClient, name: str, password: str) -> list[str]:
    """Sign in; return the methods of the second step if there is one."""
    body = models.LoginBody(identifier=name, password=password)
    answer = login.sync(client=client, body=body)
    if not isinstance(answer, models.SignedInOrMfaRequiredAnswer):
        raise Refused(answer)
    return [*answer.data.methods] if isinstance(answer.data, models.MfaRequiredData) else []


def refresh(client: AuthenticatedClient) -> None:
    """Go on with the session, before its access token has expired or after."""
    answer = refresh_session.sync(client=client)
    if not isinstance(answer, models.RefreshedAnswer):
        raise Refused(answer)


def who_am_i(client: AuthenticatedClient) -> models.MeData:
    """Return the account."""
    answer = get_me.sync(client=client)
    if not isinstance(answer, models.MeAnswer):
        raise Refused(answer)
    return answer.data


def usernames(client: AuthenticatedClient, limit: int = PAGE) -> Iterator[str]:
    """Yield the names of all accounts, page by page; for administrators."""
    offset, total = 0, 1
    while offset < total:
        answer = admin_list_users.sync(
            client=client,
            limit=limit,
            offset=offset,
            sort_by=models.AdminListUsersSortBy.USERNAME,
            sort_order=models.AdminListUsersSortOrder.ASC,
        )
        if not isinstance(answer, models.ManagedUserPageAnswer):
            raise Refused(answer)
        yield from (user.username for user in answer.data.items)
        offset, total = offset + limit, answer.data.total


def show(client: AuthenticatedClient, picture: bytes) -> str | None:
    """Upload an avatar; return its address."""
    file = File(payload=BytesIO(picture), file_name="avatar", mime_type="image/gif")
    answer = upload_avatar.sync(client=client, body=models.UploadAvatarBody(file=file))
    if not isinstance(answer, models.UploadedAvatarAnswer):
        raise Refused(answer)
    return answer.data.profile.avatar.url_512


def make_token(client: AuthenticatedClient, name: str, *scopes: Scope) -> str:
    """Make an access token for a program, valid for 30 days; it is shown only here."""
    body = models.CreateTokenBody(name=name, scopes=[*scopes], expires_in_days=30)
    answer = create_token.sync(client=client, body=body)
    if not isinstance(answer, models.CreatedTokenAnswer):
        raise Refused(answer)
    return answer.data.token


def do_all(url: str) -> Iterator[str]:
    """Set up the service at `url`, and yield what came of each call."""
    ada = session_at(url)
    set_up(ada, "ada", "ada@example.com", "correct horse")
    try:
        sign_in(ada, "ada", "wrong horse")
    except Refused as refused:
        yield f"refused: {refused.code}"
    sign_in(ada, "ada", "correct horse")
    refresh(ada)
    yield f"signed in: {who_am_i(ada).username}"
    yield f"shown: {show(ada, PICTURE)}"
    program = program_at(url, make_token(ada, "reports", Scope.ADMINREAD))
    yield f"accounts: {', '.join(usernames(program))}"
    try:
        show(program, PICTURE)
    except Refused as refused:
        yield f"refused: {refused.code}"


if __name__ == "__main__":
    for line in do_all(sys.argv[1]):
        sys.stdout.write(f"{line}\n")
