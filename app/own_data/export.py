"""Everything that is stored about an account, as a file: streamed, so that it may be long.

The account is read once, when the export begins; only its activity is read while the file is sent.
If the account is deleted meanwhile, its file is still sent to the end.
"""

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import IO, Any, cast
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from app.access_tokens import service as access_tokens
from app.audit import queries as audit_queries
from app.audit.models import Action
from app.avatars import files
from app.avatars import service as avatars
from app.avatars.errors import AvatarNotFound
from app.browsers import service as browsers
from app.core.access import Operator, Principal
from app.core.client import Client
from app.core.config import Bucket
from app.core.runtime import Runtime
from app.core.spreadsheet import as_csv, head_of_csv
from app.external_auth import links
from app.mail.rendering import site_name
from app.mfa import management as mfa
from app.own_data import activity, queries
from app.own_data.models import ArchiveFormat
from app.own_data.schemas import ActivityItem, ExportData
from app.passkeys import management as passkeys
from app.profile import preferences
from app.sessions import service as sessions
from app.users import service as users
from app.users.models import Account

SCHEMA_VERSION = 1
BUCKET = Bucket(per_second=5 / 3600, burst=5)
EXPORTED = "Somebody signed in to your account downloaded all that is stored about you."
MEDIA_TYPES = {ArchiveFormat.JSON: "application/json", ArchiveFormat.ZIP: "application/zip"}
README = """\
This archive has what {service} stores about the account {username}, as of {at}.

export.json       everything, in these members:
  account                    the account and its profile
  preferences                the settings of its pages
  sessions                   where it is signed in
  browsers                   the browsers that have signed in to it
  second_factors             its authenticator app, without the secret
  tokens                     its access tokens, without their secret part
  recovery_codes_remaining   how many recovery codes are unused
  passkeys                   its passkeys, without their keys
  external_identities        its identities at other services
  teams                      its teams, and since when
  invitation                 the invitation by which it came
  mails                      the mails to it; finished ones are kept for a week
  activity                   what it did and what was done to it, newest first
activity.csv      the activity as a table; ' stands before what a spreadsheet takes for a formula
avatar-1024.webp  the uploaded picture, if there is one

Passwords, keys and codes are not in it, nor is what belongs to others.
"""
COLUMNS = (
    "id",
    "at",
    "by",
    "action",
    "entity_type",
    "entity_name",
    "details",
    "ip_address",
    "user_agent",
)


def file_name(rt: Runtime, account: Account, kind: ArchiveFormat) -> str:
    """Return what the file is called."""
    return f"gatehouse-{account.username}-{rt.clock.now():%Y-%m-%d}.{kind}"


def own(rt: Runtime, principal: Principal, kind: ArchiveFormat, client: Client) -> Iterator[bytes]:
    """Return the caller's file piece by piece, recording that and notifying its owner.

    Raises, before the first piece: RateLimited, StorageFailed; AccountDisabled, TokenInvalid if the
    account or session ended meanwhile.
    """
    if rt.config.rate_limits:
        rt.limits.rates.take("export", BUCKET, str(principal.user_id))
    with rt.transaction() as session:
        account = sessions.lock_account(rt, session, principal)
        details = {"format": kind}
        users.record(rt, session, Action.USER_EXPORT_DATA, account, client, details)
        users.notify_owner(rt, session, account, EXPORTED)
    return export(rt, account, kind)


def of_another(
    rt: Runtime, by: Operator, who: str | int, kind: ArchiveFormat
) -> tuple[Account, Iterator[bytes]]:
    """Return an account and its file piece by piece; the export is recorded.

    Raises: UserNotFound, StorageFailed.
    """
    with rt.transaction() as session:
        account = users.lock_named(session, who)
        users.record_by(rt, session, by, Action.USER_EXPORT_DATA, account, {"format": kind})
    return account, export(rt, account, kind)


def export(rt: Runtime, account: Account, kind: ArchiveFormat) -> Iterator[bytes]:
    """Return the file of an account piece by piece. Raises: StorageFailed, before the first."""
    with rt.reading() as session:
        last_id = audit_queries.last_id(session)
    head = _head(rt, account)
    if kind is ArchiveFormat.JSON:
        return _document(rt, account, head, last_id)
    about = {"service": head["service"], "username": account.username, "at": head["generated_at"]}
    contents: list[tuple[str, Iterable[bytes]]] = [
        ("README.txt", [README.format(**about).encode()]),
        ("export.json", _document(rt, account, head, last_id)),
        ("activity.csv", _table(rt, account, last_id)),
    ]
    if (picture := _picture(rt, account)) is not None:
        contents.append(("avatar-1024.webp", [picture]))
    return _archive(rt, contents)


def _head(rt: Runtime, account: Account) -> dict[str, Any]:
    """Return all members but the activity, as they are written."""
    factors = mfa.show(rt, account.id)
    with rt.reading() as session:
        found = {
            "tokens": access_tokens.list_of(rt, session, account.id),
            "teams": queries.list_teams(session, account.id),
            "invitation": queries.find_accepted_invitation(session, account.id),
            "mails": queries.list_mails(session, account.email),
        }
    shown: dict[str, Any] = ExportData(exclude=("activity",)).dump(
        {
            "schema_version": SCHEMA_VERSION,
            "generated_at": rt.clock.now(),
            "service": site_name(rt),
            "account": account,
            "preferences": preferences.to_wire(account.preferences),
            "sessions": sessions.list_sessions(rt, account.id, None),
            "browsers": browsers.list_browsers(rt, account.id),
            "second_factors": factors.factors,
            "recovery_codes_remaining": factors.recovery_codes_remaining,
            "passkeys": passkeys.list_passkeys(rt, account.id),
            "external_identities": links.list_links(rt, account.id),
            **found,
        }
    )
    return shown


def _entries(rt: Runtime, account: Account, last_id: int) -> Iterator[list[dict[str, Any]]]:
    dump = ActivityItem(many=True).dump
    return (dump(entries) for entries in activity.read_batches(rt, account, last_id))


def _document(rt: Runtime, account: Account, head: dict[str, Any], last_id: int) -> Iterator[bytes]:
    yield f'{_json(head)[:-1]}, "activity": ['.encode()
    comma = ""
    for entries in _entries(rt, account, last_id):
        if entries:
            yield (comma + ", ".join(map(_json, entries))).encode()
            comma = ", "
    yield b"]}\n"


def _table(rt: Runtime, account: Account, last_id: int) -> Iterator[bytes]:
    yield head_of_csv(COLUMNS)
    for entries in _entries(rt, account, last_id):
        rows = [{**entry, "details": _json(entry["details"])} for entry in entries]
        yield as_csv([[entry[name] for name in COLUMNS] for entry in rows])


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _picture(rt: Runtime, account: Account) -> bytes | None:
    """Return the uploaded picture, even if the account now uses another one."""
    name = files.name_of(account)
    if name is not None:
        with suppress(AvatarNotFound):
            return avatars.read(rt, avatars.Picture(account.id, name, 1024))[1]
    return None


class _Sink:
    """What an archive is written to; `taken` empties it."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, piece: bytes) -> int:
        self._pieces.append(bytes(piece))
        return len(piece)

    def flush(self) -> None:
        """Do nothing: there is nothing below."""

    def taken(self) -> bytes:
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)


def _archive(rt: Runtime, contents: list[tuple[str, Iterable[bytes]]]) -> Iterator[bytes]:
    sink, at = _Sink(), rt.clock.now().timetuple()[:6]
    with ZipFile(cast("IO[bytes]", sink), "w") as archive:
        for name, pieces in contents:
            member = ZipInfo(name, date_time=cast("Any", at))
            member.compress_type = ZIP_DEFLATED
            with archive.open(member, "w") as file:
                for piece in pieces:
                    file.write(piece)
                    if written := sink.taken():
                        yield written
    yield sink.taken()
