"""Access tokens, and the programs that have them."""

import itertools
from typing import Any

import sqlalchemy as sa
from flask import Flask

from app.access_tokens import queries
from app.access_tokens import service as tokens
from app.access_tokens.form import new_token
from app.access_tokens.models import AccessToken
from app.core.access import Scope
from app.core.runtime import Runtime
from app.crypto.tokens import digest
from app.web import runtime as web_runtime
from tests.support.api import ApiClient
from tests.support.factories import KnownUser
from tests.support.leaks import watch

PATH = "/auth/tokens"
_numbers = itertools.count(1)


def add_token(rt: Runtime, user: KnownUser, *scopes: str, **columns: Any) -> tuple[str, int]:
    """Insert a token, whatever the rules are; return its text and its id."""
    text, now = new_token(), rt.clock.now()
    watch.note(text)
    given = {"name": f"program {next(_numbers)}", "expires_at": None, "created_at": now, **columns}
    stored = AccessToken(
        user_id=user.id,
        digest=digest(text),
        prefix=text[:8],
        stored_scopes=" ".join(map(Scope, scopes)),
        **given,
    )
    with rt.transaction() as session:
        return text, queries.add(session, stored).id


def program(app: Flask, text: str) -> ApiClient:
    """Return the client of a program that has this token."""
    return ApiClient(app, {"Authorization": f"Bearer {text}"})


def program_of(app: Flask, user: KnownUser, *scopes: str, **columns: Any) -> ApiClient:
    """Return the client of a program with a new token."""
    return program(app, add_token(web_runtime.of(app), user, *scopes, **columns)[0])


def row_of(rt: Runtime, token_id: int) -> Any:
    """Return the stored columns of a token; None if it is gone."""
    statement = sa.select(*AccessToken.__table__.columns).where(AccessToken.id == token_id)
    with rt.reading() as session:
        return session.execute(statement).one_or_none()


def names_of(rt: Runtime, user: KnownUser) -> list[str]:
    """Return the names of an account's tokens, newest first."""
    with rt.reading() as session:
        return [token.name for token in tokens.list_of(rt, session, user.id)]
