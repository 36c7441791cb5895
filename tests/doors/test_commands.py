"""Every command has its twin over HTTP, and both are the same action in the audit log."""

import json
import re
from collections.abc import Iterator
from typing import Any

import click
import pytest
import sqlalchemy as sa
from flask import Flask

from app.audit.models import AuditEntry
from app.core.runtime import Runtime
from tests.doors.findings import Findings
from tests.support import factories
from tests.support.api import ApiClient
from tests.support.clock import FakeClock
from tests.support.commands import CommandLine
from tests.support.factories import KnownUser
from tests.support.openapi import description

METHODS = ("get", "post", "put", "patch", "delete")
# The operation that does over HTTP what a command does.
TWINS = {
    "doctor": "adminRunDoctor",
    "cleanup": "adminCleanUp",
    "overview": "adminGetOverview",
    "users list": "adminListUsers",
    "users show": "adminGetUser",
    "users credentials": "adminGetUserCredentials",
    "users create": "adminCreateUser",
    "users set-role": "adminUpdateUser",
    "users set-password": "adminSetUserPassword",
    "users enable": "adminUpdateUser",
    "users disable": "adminUpdateUser",
    "users require-password-change": "adminUpdateUser",
    "users verify-email": "adminUpdateUser",
    "users set-email": "adminSetUserEmail",
    "users send-reset-mail": "adminSendPasswordResetMail",
    "users set-quota": "adminUpdateUser",
    "users assign-group": "adminUpdateUser",
    "users reset-mfa": "adminResetUserMfa",
    "users remove-passkey": "adminRemoveUserPasskey",
    "users remove-link": "adminRemoveUserExternalLink",
    "users unlock": "adminUnlockUser",
    "users revoke-sessions": "adminRevokeUserSessions",
    "users delete": "adminDeleteUser",
    "invitations create": "adminCreateInvitation",
    "invitations resend": "adminResendInvitation",
    "invitations list": "adminListInvitations",
    "invitations revoke": "adminRevokeInvitation",
    "external-auth kinds": "adminListProviderKinds",
    "external-auth list": "adminListProviders",
    "external-auth add": "adminCreateProvider",
    "external-auth update": "adminUpdateProvider",
    "external-auth enable": "adminUpdateProvider",
    "external-auth disable": "adminUpdateProvider",
    "external-auth test": "adminTestProvider",
    "external-auth test-draft": "adminTestProviderDraft",
    "external-auth remove": "adminDeleteProvider",
    "sessions list": "adminListUserSessions",
    "sessions revoke": "adminRevokeUserSession",
    "tokens list": "adminListUserTokens",
    "tokens revoke": "adminRemoveUserToken",
    "config list": "adminListSettings",
    "config get": "adminGetSetting",
    "config describe": "adminDescribeSettings",
    "config set": "adminSetSetting",
    "config unset": "adminChangeSettings",
    "config validate": "adminRunDoctor",
    "config export": "adminExportSettings",
    "config import": "adminImportSettings",
    "mail test": "adminSendTestMail",
    "mail outbox": "adminListMails",
    "mail flush": "adminFlushMails",
    "mail retry": "adminRetryMail",
    "mail preview": "adminPreviewMail",
    "storage policies": "adminListStoragePolicies",
    "storage groups": "adminListPolicyGroups",
    "storage create-policy": "adminCreateStoragePolicy",
    "storage create-group": "adminCreatePolicyGroup",
    "storage update-group": "adminUpdatePolicyGroup",
    "storage set-default": "adminUpdatePolicyGroup",
    "storage enable-group": "adminUpdatePolicyGroup",
    "storage disable-group": "adminUpdatePolicyGroup",
    "storage delete-group": "adminDeletePolicyGroup",
    "storage migrate-assignments": "migratePolicyGroupAssignments",
    "storage bootstrap": "adminBootstrapStorage",
    "teams create": "adminCreateTeam",
    "teams list": "adminListTeams",
    "teams members": "adminListTeamMembers",
    "teams set-role": "adminSetTeamMemberRole",
    "teams add-member": "adminAddTeamMember",
    "teams remove-member": "adminRemoveTeamMember",
    "teams update": "adminUpdateTeam",
    "teams assign-group": "adminUpdateTeam",
    "teams archive": "adminArchiveTeam",
    "teams restore": "adminRestoreTeam",
    "keys list": "adminListKeys",
    "keys rotate": "adminRotateKeys",
    "audit list": "adminListAuditEntries",
    "audit export": "adminExportAuditLog",
    "audit actions": "adminListAuditActions",
}
# What only the machine's own operator can do, and why.
ALONE = {
    "prepare": "before it there is no service to ask",
    "users export": "over HTTP people export what is stored about themselves, and nobody else does",
    "users import": "brings in password hashes, from a file of another service",
    "tokens create": "over HTTP people make tokens for themselves, and nobody for another",
    "events publish": "over HTTP nobody can tell the clients of others that a file has changed",
    "events tail": "over HTTP everybody hears what is about themselves",
}
DATABASE = "db "  # of Flask-Migrate, for who develops the service


def commands(group: Any, *names: str) -> Iterator[str]:
    """Yield the names of all commands below a group."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, *names, name)
        else:
            yield " ".join((*names, name))


def operations(app: Flask) -> dict[str, tuple[str, str]]:
    """Return method and path of every operation by its id."""
    paths = description(app).document["paths"]
    return {
        item[method]["operationId"]: (method, path)
        for path, item in paths.items()
        for method in METHODS
        if method in item
    }


def test_every_command_has_a_twin_or_stands_alone_for_a_reason(app: Flask) -> None:
    known = {name for name in commands(app.cli) if not name.startswith(DATABASE)}
    assert known == TWINS.keys() | ALONE.keys()
    assert TWINS.keys() & ALONE.keys() == set()
    assert set(TWINS.values()) - operations(app).keys() == set()


# --- the same action ------------------------------------------------------------------------------

SETTINGS = {1: "branding_title", 2: "branding_description"}
# In this order: words of the command and body of its twin. {names} are of what each of them does
# it to: an account, a team, a provider, a policy group and an invitation of its own.
PAIRS: dict[str, tuple[str, dict[str, Any] | None]] = {
    "mail flush": ("", None),
    "users create": (
        "--username new{n} --email new{n}@example.com --generate",
        {"username": "new{n}", "email": "new{n}@example.com"},
    ),
    "users send-reset-mail": ("{user}", None),
    "sessions revoke": ("{session}", None),
    "tokens revoke": ("{token}", None),
    "users set-role": ("{user} user", {"role": "user"}),
    "users disable": ("{user}", {"status": "disabled"}),
    "users enable": ("{user}", {"status": "active"}),
    "users require-password-change": ("{user}", {"must_change_password": True}),
    "users verify-email": ("{user} --off", {"email_verified": False}),
    "users set-email": ("{user} other{n}@example.com", {"email": "other{n}@example.com"}),
    "users set-password": ("{user} --generate", {}),
    "users set-quota": ("{user} 1000", {"storage_quota": 1000}),
    "users assign-group": ("{user} {group}", {"policy_group_id": "{group}"}),
    "users reset-mfa": ("{user}", None),
    "users unlock": ("{user}", None),
    "users revoke-sessions": ("{user}", None),
    "teams add-member": ("{team} {user}", {"identifier": "{user}"}),
    "teams set-role": ("{team} {user} admin", {"role": "admin"}),
    "teams remove-member": ("{team} {user}", None),
    "teams update": ("{team} --description Changed", {"description": "Changed"}),
    "teams assign-group": ("{team} {group}", {"policy_group_id": "{group}"}),
    "teams archive": ("{team} --yes", None),
    "teams restore": ("{team}", None),
    "teams create": ("more{n} --owner boss", {"name": "more{n}", "admin_identifier": "boss"}),
    "storage migrate-assignments": ("{group} {other}", {"target_group_id": "{other}"}),
    "storage update-group": ("{group} --description Changed", {"description": "Changed"}),
    "storage disable-group": ("{group}", {"is_enabled": False}),
    "storage enable-group": ("{group}", {"is_enabled": True}),
    "storage delete-group": ("{group} --yes", None),
    "storage create-policy": ("more{n}", {"name": "more{n}"}),
    "invitations resend": ("{invitation}", None),
    "invitations revoke": ("{spare}", None),
    "invitations create": ("more{n}@example.com", {"email": "more{n}@example.com"}),
    "external-auth test": ("{key}", None),
    "external-auth update": ("{key} --name Changed", {"display_name": "Changed"}),
    "external-auth disable": ("{key}", {"enabled": False}),
    "external-auth enable": ("{key}", {"enabled": True}),
    "external-auth test-draft": (
        "github --client-id x",
        {"provider_kind": "github", "client_id": "x"},
    ),
    "external-auth remove": ("{key} --yes", None),
    "external-auth add": (
        "github --key more{n} --client-id x",
        {"provider_kind": "github", "key": "more{n}", "display_name": "GitHub", "client_id": "x"},
    ),
    "config set": ("{setting} Name{n}", {"value": "Name{n}"}),
    "config unset": ("{setting}", {"unset": [SETTINGS[2]]}),
    "cleanup": ("", None),
    "storage bootstrap": ("", None),
    "users delete": ("{user} --yes", None),
}
# Whose preparation costs more than it tells.
UNTRIED = {
    "config import",  # as config set
    "keys rotate",  # the keys of a test come from its environment
    "mail retry",  # as mail flush
    "mail test",  # asks an SMTP server
    "storage create-group",
    "storage set-default",
    "users remove-link",
    "users remove-passkey",
}
# What ends the names of those ids in an entry that are of one of the two.
OWN = ("user_id", "group_id", "session_id")
# The argument of a path by command, or by group of commands.
OBJECTS = {
    "invitations revoke": "spare",
    "users": "user_id",
    "sessions": "user_id",
    "tokens": "user_id",
    "teams": "team",
    "storage": "group",
    "invitations": "invitation",
    "external-auth": "provider",
}
QUERIES = {"users delete": "?confirm={user}", "external-auth remove": "?force=true"}


@pytest.fixture
def line(app: Flask) -> CommandLine:
    return CommandLine(app)


@pytest.fixture
def operator(api: ApiClient, admin: KnownUser) -> ApiClient:
    api.login(admin).ok()
    return api


def prepared(app: Flask, rt: Runtime, line: CommandLine, number: int) -> dict[str, Any]:
    """Make what one of the two changes; return names and ids."""
    user = factories.make_user(rt, username=f"user{number}", role="admin")
    factories.bearer_of(rt, app, user)
    policy = line.json("storage", "policies")[0]["name"]
    groups = [
        line.json("storage", "create-group", f"{name}{number}", "--policy", policy)["id"]
        for name in ("group", "other")
    ]
    github = ("github", "--key", f"key{number}", "--client-id", "x")
    invitations = [
        line.json("invitations", "create", f"{name}{number}@example.com")["id"]
        for name in ("guest", "spare")
    ]
    return {
        "n": number,
        "user": user.username,
        "user_id": user.id,
        "session": line.json("sessions", "list", user.username)[0]["id"],
        "token": line.json(
            "tokens", "create", user.username, "--name", f"token{number}", "--scope", "files"
        )["info"]["id"],
        "team": line.json("teams", "create", f"team{number}", "--owner", "boss")["id"],
        "group": groups[0],
        "other": groups[1],
        "key": f"key{number}",
        "provider": line.json("external-auth", "add", *github)["id"],
        "invitation": invitations[0],
        "spare": invitations[1],
        "setting": SETTINGS[number],
    }


def filled(value: Any, names: dict[str, Any]) -> Any:
    """Fill {names} in texts; what is a {name} as a whole stays a number if it is one."""
    if not isinstance(value, str):
        return value
    text = value.format_map(names)
    return int(text) if text.isdigit() and value in {"{group}", "{other}"} else text


def path_of(template: str, command: str, names: dict[str, Any]) -> str:
    changed = OBJECTS.get(command) or OBJECTS.get(command.partition(" ")[0], "n")
    values = {"id": names[changed], "user_id": names["user_id"]}
    values |= {"session_id": names["session"], "token_id": names["token"]}
    values["key"] = names["setting"]
    path = template.removeprefix("/api/v1").format_map(values)
    return path + QUERIES.get(command, "").format_map(names)


def recorded(rt: Runtime, after: int, names: dict[str, Any]) -> list[tuple[str, str, Any]]:
    """Return what was recorded after an entry, about whatever has these names and ids."""
    columns = AuditEntry.action, AuditEntry.entity_type, AuditEntry.details
    with rt.reading() as connection:
        rows = connection.execute(sa.select(*columns).where(AuditEntry.id > after))
        return [(row.action, row.entity_type, told(row.details, names)) for row in rows]


def told(details: str | None, names: dict[str, Any]) -> dict[str, Any]:
    """Return details; of ids whether they are among these, and texts without the number."""
    found = json.loads(details or "{}")
    for member, value in found.items():
        if member.endswith(OWN) and not member.startswith("previous_"):
            found[member] = value in names.values()
        elif isinstance(value, str):
            found[member] = re.sub(rf"(?<=[a-z]){names['n']}\b", "{n}", value)
    return found


def last(rt: Runtime) -> int:
    with rt.reading() as connection:
        return connection.execute(sa.select(sa.func.max(AuditEntry.id))).scalar() or 0


def test_every_change_is_either_compared_or_known_not_to_be(app: Flask) -> None:
    known = operations(app)
    changes = {command for command, twin in TWINS.items() if known[twin][0] != "get"}
    changes.discard("mail preview")  # changes nothing
    assert changes == PAIRS.keys() | UNTRIED


def test_a_command_and_its_twin_are_the_same_action(
    app: Flask, rt: Runtime, line: CommandLine, operator: ApiClient, clock: FakeClock
) -> None:
    known, findings = operations(app), Findings()
    one, other = (prepared(app, rt, line, number) for number in (1, 2))
    assert line("mail", "flush").exit_code == 0
    clock.advance(minutes=2)  # until an invitation may be sent again
    for command, (words, body) in PAIRS.items():
        with findings.about(command):
            before = last(rt)
            done = line(*command.split(), *words.format_map(one).split(), "--json")
            assert done.exit_code == 0, done
            by_command, before = recorded(rt, before, one), last(rt)
            method, template = known[TWINS[command]]
            given = body and {name: filled(value, other) for name, value in body.items()}
            answer = operator.call(method.upper(), path_of(template, command, other), given)
            assert answer.status < 300, answer
            assert recorded(rt, before, other) == by_command
    findings.are_none()
