"""Accounts of another service, brought in many at a time with their password hashes."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.audit.models import Action
from app.core.access import Operator
from app.core.errors import AppError
from app.core.runtime import Runtime
from app.crypto import foreign_hashes
from app.crypto.foreign_hashes import Foreign, Pepper
from app.settings import keys
from app.setup import service as setup
from app.store import bulk
from app.user_admin.errors import HashInvalid
from app.user_admin.service import group_for
from app.users import identifiers, password_secrets
from app.users import queries as users_queries
from app.users import service as users
from app.users.errors import EmailExists, IdentifierExists, UsernameExists
from app.users.models import Role, User

Line = tuple[int, bytes]


@dataclass(frozen=True)
class Entry:
    """One account of the file, checked by itself; without a hash it has no usable password."""

    line: int
    username: str
    email: str
    is_verified: bool
    role: Role
    password: Foreign | None = field(repr=False)


@dataclass
class Report:
    """What became of the lines, or would: numbers, and the error of each refused line."""

    created: int = 0
    existing: int = 0
    formats: Counter[str] = field(default_factory=Counter)
    refused: dict[int, AppError] = field(default_factory=dict)


@dataclass(frozen=True)
class Taken:
    """The address of each username key in use, and all addresses in use or being changed to."""

    names: dict[str, str] = field(default_factory=dict)
    addresses: set[str] = field(default_factory=set)

    def take(self, entry: Entry) -> bool:
        """Take an account's name and address; return False if it is there already.

        Raises: UsernameExists, EmailExists.
        """
        key = identifiers.username_key(entry.username)
        if self.names.get(key) == entry.email:
            return False
        if key in self.names:
            raise UsernameExists
        if entry.email in self.addresses:
            raise EmailExists
        self.names[key] = entry.email
        self.addresses.add(entry.email)
        return True


def import_accounts(
    rt: Runtime,
    by: Operator,
    lines: Iterable[Line],
    read: Callable[[bytes], Mapping[str, Any]],
    *,
    pepper: Pepper | None = None,
    is_dry_run: bool = False,
) -> Report:
    """Create the accounts of numbered lines, batch by batch; nothing is created by a dry run.

    `read` returns the members of a line, or raises what is wrong with it, which stops no other.
    What is there already is left as it is, so the same file can be imported again.
    Raises: SystemNotInitialized, NoAdministrator.
    """
    setup.require_ready_now(rt)
    report, planned = Report(), Taken()
    for batch in _batches(lines):
        entries = list(_entries(rt, batch, read, pepper, report))
        if is_dry_run:
            with rt.reading() as session:
                _count(report, _new(session, entries, planned, report))
        else:
            _store(rt, by, entries, report)
    return report


def _batches(lines: Iterable[Line]) -> Iterator[list[Line]]:
    rest = iter(lines)
    while batch := list(islice(rest, bulk.BATCH_ROWS)):
        yield batch


def _entries(
    rt: Runtime,
    lines: Iterable[Line],
    read: Callable[[bytes], Mapping[str, Any]],
    pepper: Pepper | None,
    report: Report,
) -> Iterator[Entry]:
    for number, text in lines:
        try:
            yield _entry(rt, number, pepper, **read(text))
        except AppError as error:
            report.refused[number] = error


def _entry(
    rt: Runtime,
    line: int,
    pepper: Pepper | None,
    *,
    name: str,
    address: str,
    verified: bool,
    role: Role,
    hash: str | None,
    firebase: Mapping[str, Any] | None = None,
) -> Entry:
    try:
        password = None if hash is None else _password(hash, pepper, firebase)
        if password is not None:
            sample = foreign_hashes.sample_of(password.text)
            foreign_hashes.require_bearable(rt.passwords.seconds(sample), "measured here")
    except ValueError as error:
        raise HashInvalid(f"hash {error}.") from None
    username, email = identifiers.username(name), identifiers.email(address)
    return Entry(line, username, email, verified, role, password)


def _password(typed: str, pepper: Pepper | None, firebase: Mapping[str, Any] | None) -> Foreign:
    if firebase is None:
        return foreign_hashes.checked(typed, pepper)
    if pepper:
        raise ValueError("of Firebase takes no pepper")
    return foreign_hashes.checked_firebase(typed, **firebase)


def _store(rt: Runtime, by: Operator, entries: list[Entry], report: Report) -> None:
    """Create the accounts of a batch, all in one transaction."""
    found = Report()
    try:
        with rt.transaction() as session:
            _create(rt, session, by, entries, found)
    except IntegrityError:
        # Somebody has just registered with one of these names.
        if len(entries) > 1:
            for entry in entries:
                _store(rt, by, [entry], report)
            return
        found = Report(refused={entries[0].line: IdentifierExists()})
    report.created += found.created
    report.formats += found.formats
    report.existing += found.existing
    report.refused |= found.refused


def _create(
    rt: Runtime, session: Session, by: Operator, entries: list[Entry], report: Report
) -> None:
    group_id = group_for(session, Role.USER)
    quota, now = rt.settings.get(keys.DEFAULT_STORAGE_QUOTA), rt.clock.now()
    needed = {entry.password.secret for entry in entries if entry.password}
    secrets = password_secrets.keep(rt, session, {one for one in needed if one is not None})
    # Always in the same order: two imports must not wait for each other.
    for address in sorted({entry.email for entry in entries}):
        users.lock_address(session, address)
    new = _new(session, entries, Taken(), report)
    rows = [
        User(
            username=entry.username,
            username_key=identifiers.username_key(entry.username),
            email=entry.email,
            password_hash=_stored(entry.password, secrets),
            role=entry.role,
            activated_at=now,
            email_verified_at=now if entry.is_verified else None,
            proven_at=now if entry.is_verified else None,
            storage_quota=quota,
            policy_group_id=group_id,
            created_at=now,
            updated_at=now,
        )
        for entry in new
    ]
    session.add_all(rows)
    session.flush()
    if hashes := [row.password_hash for row in rows if row.password_hash is not None]:
        samples = {rt.passwords.own_sample, *map(foreign_hashes.sample_of, hashes)}
        users_queries.add_hash_kinds(session, samples)
    for row in rows:
        details = {"role": row.role, "imported": True}
        users.record_by(rt, session, by, Action.ADMIN_CREATE_USER, row, details)
        if row.role == Role.ADMIN:
            event = f"The account {row.username} was imported as an administrator"
            users.notify_administrators(rt, session, by, event)
    _count(report, new)


def _stored(password: Foreign | None, secrets: Mapping[bytes, str]) -> str | None:
    if password is None:
        return None
    return password.stored(secrets[password.secret] if password.secret else None)


def _count(report: Report, created: list[Entry]) -> None:
    report.created += len(created)
    report.formats += Counter(entry.password.kind for entry in created if entry.password)


def _new(session: Session, entries: list[Entry], taken: Taken, report: Report) -> list[Entry]:
    """Return the entries to create; `taken` learns what is in use, and what they will use."""
    names = {identifiers.username_key(entry.username) for entry in entries}
    addresses = {entry.email for entry in entries}
    for key, email, pending in users_queries.list_taken(session, names, addresses):
        taken.names[key] = email
        taken.addresses.update({email, pending or email})
    new = []
    for entry in entries:
        try:
            if taken.take(entry):
                new.append(entry)
            else:
                report.existing += 1
        except (UsernameExists, EmailExists) as error:
            report.refused[entry.line] = error
    return new
