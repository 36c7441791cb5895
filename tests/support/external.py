"""Sign-ins through an external provider, as a browser goes through them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import sqlalchemy as sa

from app.core.access import COMMAND_LINE
from app.core.client import Client
from app.core.runtime import Runtime
from app.crypto.tokens import digest
from app.external_auth.drivers.driver import ExternalProfile
from app.external_auth.models import Identity, Provider
from app.external_auth.providers import service as providers
from app.external_auth.sign_in import pending
from app.external_auth.sign_in.linking import Arrival
from tests.support.api import BASE, ORIGIN, Answer
from tests.support.factories import KnownUser
from tests.support.fake_provider import FakeProvider

CALLBACK = "/auth/external-auth/callback"
COOKIE = "service_external_auth_"
NAMESPACE = "https://id.example.com"


@dataclass(frozen=True)
class Started:
    """A sign-in that has been started."""

    url: str
    answer: Answer

    @property
    def query(self) -> dict[str, str]:
        """The parameters of the authorization request."""
        return {k: v[0] for k, v in parse_qs(urlsplit(self.url).query).items()}

    @property
    def state(self) -> str:
        return self.query["state"]

    @property
    def cookie(self) -> str:
        """The secret that binds it to its browser."""
        return self.answer.set_cookies[cookie_name(self.state)].value


def cookie_name(state: str) -> str:
    return COOKIE + digest(state)


def add_provider(
    rt: Runtime, fake: FakeProvider | None = None, *, kind: str = "oidc", **typed: Any
) -> Provider:
    """Configure a provider as an operator would; without `fake` nothing answers at its URLs."""
    issuer = fake.issuer if fake else NAMESPACE
    urls = {"issuer_url": issuer} if kind in {"oidc", "generic_oauth2"} else {}
    if kind == "generic_oauth2":
        urls |= {
            "authorization_url": f"{issuer}/authorize",
            "token_url": f"{issuer}/token",
            "userinfo_url": f"{issuer}/userinfo",
        }
    given = {
        "key": "corp",
        "display_name": "Corporate",
        "client_id": fake.client_id if fake else "client",
        "client_secret": fake.client_secret if fake else None,
        **urls,
    }
    return providers.add(rt, COMMAND_LINE, kind=kind, **(given | typed))


def change_provider(rt: Runtime, provider: Provider, **columns: Any) -> None:
    """Change a provider directly in the database."""
    with rt.transaction() as session:
        changed = sa.update(Provider).where(Provider.id == provider.id)
        session.execute(changed.values(updated_at=rt.clock.now(), **columns))


def delete_provider(rt: Runtime, provider: Provider) -> None:
    with rt.transaction() as session:
        session.execute(sa.delete(Provider).where(Provider.id == provider.id))


def link(rt: Runtime, user: KnownUser, provider: Provider, **columns: Any) -> int:
    """Link an account directly in the database; return the link's id."""
    now = rt.clock.now()
    values = {
        "user_id": user.id,
        "provider_id": provider.id,
        "identity_namespace": providers.namespace_of(rt, provider) or NAMESPACE,
        "subject": f"subject-{user.id}-{provider.id}",
        "created_at": now,
        "updated_at": now,
        "last_login_at": now,
    }
    insert = sa.insert(Identity).returning(Identity.id)
    with rt.transaction() as session:
        return int(session.execute(insert.values(**(values | columns))).scalar_one())


def links(rt: Runtime) -> list[Any]:
    """Return every link with its provider's key, oldest first."""
    statement = (
        sa.select(*Identity.__table__.columns, Provider.key)
        .join(Provider, Provider.id == Identity.provider_id)
        .order_by(Identity.id)
    )
    with rt.reading() as connection:
        return list(connection.execute(statement).all())


def wait_for_account(
    rt: Runtime, provider: Provider, subject: str = "new", path: str = "/files", **profile: Any
) -> str:
    """Store an identity that is pending an account; return its flow token."""
    with rt.transaction() as session:
        who = ExternalProfile(provider.issuer_url or NAMESPACE, subject, **profile)
        browser = Client("203.0.113.7", "test")
        return pending.open_pending(session, Arrival(provider, who, browser), path, rt.clock.now())


def start(client: Any, kind: str = "oidc", key: str = "corp", **body: Any) -> Started:
    """Begin a sign-in."""
    answer = client.post(f"/auth/external-auth/{kind}/{key}/start", body)
    return Started(answer.ok()["authorization_url"], answer)


def come_back(client: Any, parameters: Mapping[str, str], path: str = CALLBACK) -> Answer:
    """Follow the provider's redirect back to the callback."""
    return cast("Answer", client.get(f"{path}?{urlencode(parameters)}"))


def sign_in(
    client: Any, fake: FakeProvider, kind: str = "oidc", key: str = "corp", **body: Any
) -> Answer:
    """Go through a whole sign-in; return the callback's answer."""
    return come_back(client, fake.sign_in(start(client, kind, key, **body).url))


def location(answer: Answer, origin: str = ORIGIN) -> str:
    """Assert a redirect within the site; return its path and query."""
    assert (answer.status, answer.body) == (302, b""), answer
    target: str = answer.headers["Location"]
    assert target.startswith(f"{origin}/"), target
    return target.removeprefix(origin)


def told(answer: Answer, page: str = "/login") -> dict[str, str]:
    """Assert a redirect to `page`; return its decoded query parameters, in order."""
    path, _, query = location(answer).partition("?")
    assert path == page, answer.headers["Location"]
    pairs = [pair.partition("=") for pair in query.split("&")]
    values = {name: value for name, _, value in pairs}
    decoded = {name: parse_qs(f"x={value}", True)["x"][0] for name, value in values.items()}
    # All but unreserved characters must be percent-encoded.
    assert query == "&".join(f"{name}={quote(v, safe='')}" for name, v in decoded.items())
    return decoded


def fails(answer: Answer, code: str | None) -> Answer:
    """Assert an error redirect without a session; a `code` of None means one without a code."""
    expected = {"external_auth": "error"} | ({"code": code} if code else {})
    assert told(answer) == expected, answer.headers["Location"]
    assert not {"service_access", "service_refresh", "service_csrf"} & answer.set_cookies.keys()
    return answer


def signs_in(answer: Answer, path: str = "/") -> Answer:
    """Assert that a session was opened, and the path of the redirect."""
    assert location(answer) == path, answer.headers["Location"]
    assert {"service_access", "service_refresh", "service_csrf"} <= answer.set_cookies.keys()
    return answer


def asks_for_address(answer: Answer, path: str = "/") -> str:
    """Assert the redirect that asks for the user's address; return the flow token."""
    data = told(answer)
    assert list(data) == ["external_auth", "flow", "return_path"], data
    assert (data["external_auth"], data["return_path"]) == ("email_required", path)
    assert data["flow"].startswith("oev_")
    assert not {"service_access", "service_refresh", "service_csrf"} & answer.set_cookies.keys()
    return data["flow"]


__all__ = ["BASE", "Started"]
