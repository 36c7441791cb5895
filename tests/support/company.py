"""An installation that a company has used for a month, as the tests of the pages' looks need it.

Names, addresses and texts have the lengths that people give them; nothing depends on chance.
"""

from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from playwright.sync_api import Page

from app.access_tokens.models import AccessToken
from app.audit.models import AuditEntry, AuditHour
from app.browsers.models import Browser
from app.core.access import Scope
from app.passkeys.models import Passkey
from app.sessions.models import LoginSession
from app.storage_policies import queries as storage_queries
from app.users.models import User
from tests.support import factories, outbox
from tests.support.pages import Site, ask, sign_in_by_api

PEOPLE = (
    "amelie.hoffmann", "benjamin.okafor", "carla", "dmitri.wladimirow", "eleonora.castellani",
    "fatima", "giovanni.bartolomei", "hiroshi", "ingrid.soederstroem", "jean-baptiste.delacroix",
    "katarzyna.wisniewska", "liam", "maximilian.freiherr-von-thurn", "nora", "oluwaseun.adebayo",
    "priya.raghunathan", "quentin", "roswitha", "siobhan", "tomasz",
)  # fmt: skip
AGENTS = (
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) "
    "Version/17.4 Safari/605.1.15",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_4 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like "
    "Gecko) Version/17.4 Mobile/15E148 Safari/604.1",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/124.0.0.0 Safari/537.36 Edg/124.0.0.0",
)
ADDRESSES = ("203.0.113.24", "2001:db8:85a3:8d3:1319:8a2e:370:7348", "198.51.100.7", "127.0.0.1")
TEAM = "Brand and Communication Design"
DAYS = 30


def settle(site: Site, page: Page) -> dict[str, str]:
    """Fill the installation, signed in as `ada`; return what stands in addresses of its pages."""
    sign_in_by_api(page, site.ada)
    page.goto("/settings/data")
    people = _add_people(site)
    _add_past(site)
    for owner in (site.ada.id, people[0]):
        _add_tokens(site, owner)
    for word in ("ada.lovelace.the.second@analytical-engines.example.com", "eve@example.com"):
        site.flask("invitations", "create", word)
    outbox.queue(site.rt, "somebody.with.a.long.name@mail.example.com")
    outbox.queue(site.rt, "carla@example.com")
    providers = (
        ("google", "google", "Google", ""),
        ("github", "github", "GitHub", ""),
        ("company", "oidc", "Single sign-on of the company", "https://id.example.com"),
    )
    for key, kind, name, issuer in providers:
        body = {
            "key": key,
            "provider_kind": kind,
            "display_name": name,
            "client_id": "0123456789.apps.example.com",
            "client_secret": "a secret of the provider",
        }
        ask(
            page,
            "/admin/external-auth/providers",
            body | ({"issuer_url": issuer} if issuer else {}),
        )
    team = ask(page, "/admin/teams", {"name": TEAM, "admin_identifier": "ada"})
    ask(page, "/admin/teams", {"name": "Support", "admin_identifier": "carla"})
    for name in PEOPLE[:4]:
        ask(page, f"/admin/teams/{team['id']}/members", {"identifier": name, "role": "member"})
    site.configure(branding_title="Files of the Analytical Society", mail_smtp_port=587)
    return {"user": str(people[0]), "team": str(team["id"])}


def _add_people(site: Site) -> list[int]:
    """Add accounts in every state; return their ids."""
    now = site.rt.clock.now()
    with site.rt.reading() as session:
        group = storage_queries.find_default_group_id(session)
    rows: list[dict[str, Any]] = [
        {
            "username": name,
            "username_key": name,
            "email": f"{name}@{'analytical-society.example' if number % 3 else 'example.com'}",
            "email_verified_at": None if number % 7 == 3 else now,
            "activated_at": None if number % 7 == 3 else now,
            "policy_group_id": group,
            "role": "admin" if number == 9 else "user",
            "status": "disabled" if number % 6 == 5 else "active",
            "storage_used": number * 734_003_200,
            "storage_quota": number % 4 * 10_000_000_000,
            "created_at": now - timedelta(days=number, hours=number),
            "updated_at": now,
        }
        for number, name in enumerate(PEOPLE)
    ]
    with site.rt.transaction() as session:
        ids = session.scalars(sa.insert(User).returning(User.id), rows).all()
    return list(ids)


def _add_past(site: Site) -> None:
    """Let a month have passed: sign-ins, refusals, other devices, passkeys."""
    now = site.rt.clock.now()
    ada = site.ada.id
    entries = [
        AuditEntry(
            user_id=ada,
            action="user_login_failed" if number % 5 == 4 else "user_login",
            entity_type="session",
            entity_name="ada",
            ip_address=ADDRESSES[number % len(ADDRESSES)],
            user_agent=AGENTS[number % len(AGENTS)],
            created_at=now - timedelta(days=number % DAYS, minutes=7 * number),
        )
        for number in range(60)
    ]
    hours = [
        AuditHour(hour=_hour(now - timedelta(days=day)), action=action, n=number)
        for day in range(1, DAYS)
        for action, number in (("user_login", 40 + day * 7 % 23), ("user_login_failed", day % 6))
    ]
    with site.rt.transaction() as session:
        session.add_all([*entries, *hours])
    ids = factories.add_passkeys(site.rt, site.ada, 2)
    names = ("Chrome on Linux", "Security key in the drawer of the office on the second floor")
    month = timedelta(days=DAYS)
    site.configure(auth_mfa_trusted_device_secs=int(month.total_seconds()))
    with site.rt.transaction() as session:
        session.add_all(_browser(site, number, month) for number in range(3))
    with site.rt.transaction() as session:
        for id_, name in zip(ids, names, strict=True):
            session.execute(sa.update(Passkey).where(Passkey.id == id_).values(name=name))
        for number, agent in enumerate(AGENTS):
            session.add(_device(site, number, agent))


def _add_tokens(site: Site, owner: int) -> None:
    """Let programs have tokens: new, used, without an end, expired."""
    now = site.rt.clock.now()
    about = (
        ("Deployment of the documentation of the company", (Scope.ADMIN_READ,), 3, 87, None),
        ("Finder", (Scope.FILES,), 12, 4, 0),
        ("accounts.py", (Scope.PROFILE, Scope.EVENTS, Scope.FILES, Scope.ADMIN), 200, None, 2),
        ("Old phone", (Scope.PROFILE_READ, Scope.FILES_READ), 100, -10, 11),
    )
    rows = [
        AccessToken(
            user_id=owner,
            name=name,
            digest=f"digest {owner} {number}",
            prefix="gth_Zb31",
            stored_scopes=" ".join(scopes),
            created_at=now - timedelta(days=age),
            expires_at=None if left is None else now + timedelta(days=left),
            last_used_at=None if used is None else now - timedelta(days=used, hours=1),
            last_used_ip=None if used is None else ADDRESSES[number % len(ADDRESSES)],
        )
        for number, (name, scopes, age, left, used) in enumerate(about)
    ]
    with site.rt.transaction() as session:
        session.add_all(rows)


def _browser(site: Site, number: int, trusted_for: timedelta) -> Browser:
    """Return a browser that is trusted."""
    seen = site.rt.clock.now() - timedelta(days=number)
    return Browser(
        user_id=site.ada.id,
        digest=f"digest {number}",
        name=("Safari on Mac", "Samsung Internet on Android", "Unknown browser")[number],
        ip_address=ADDRESSES[number],
        first_seen_at=seen - timedelta(days=90),
        last_seen_at=seen,
        remembered_at=seen,
        remembered_until=seen + trusted_for,
        seen_since_reset=True,
    )


def _hour(moment: datetime) -> datetime:
    return moment.replace(minute=0, second=0, microsecond=0)


def _device(site: Site, number: int, agent: str) -> LoginSession:
    now = site.rt.clock.now()
    return LoginSession(
        id=f"00000000-0000-4000-8000-00000000000{number}",
        user_id=site.ada.id,
        refresh_selector=f"selector {number}",
        refresh_digest=f"digest {number}",
        is_limited=False,
        ip_address=ADDRESSES[number],
        user_agent=agent,
        created_at=now - timedelta(days=9 * number + 1),
        last_seen_at=now - timedelta(hours=5 * number + 1),
        confirmed_at=now,
        expires_at=now + timedelta(days=20),
    )
