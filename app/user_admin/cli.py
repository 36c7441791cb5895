"""`flask users`: accounts. USER is an id, a username or an e-mail address everywhere."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from app.core.access import COMMAND_LINE
from app.core.parsing import format_size
from app.core.runtime import Runtime
from app.core.texts import pluralized
from app.crypto.tokens import generated_password
from app.own_data import export
from app.own_data.models import ArchiveFormat
from app.user_admin import addresses, credentials, queries
from app.user_admin import service as accounts
from app.user_admin.schemas import CredentialsData
from app.users import service as users
from app.users.cli import Size, user_argument
from app.users.models import MAX_QUOTA_BYTES, Account, Role, Standing, Status
from app.users.schemas import ManagedUser
from app.web.cli import (
    Commands,
    Output,
    ValueCommand,
    Word,
    confirm,
    details,
    is_at_terminal,
    read_secret,
    sentence,
    table,
    write_new,
    yes_option,
)
from app.web.runtime import runtime
from app.web.schema import INT64

MAX_LISTED = 2**31 - 1

group = Commands("users", help="Accounts; USER is an id, a username or an e-mail address.")
role_choice = Word(Role)


def on_user(name: str) -> Callable[[Callable[..., Output]], click.Command]:
    """Make a command about one account."""
    return lambda function: group.command(name)(user_argument(function))


force_option = click.option("--force", is_flag=True, help="Even if it is the only way to sign in.")


def password_options(function: Callable[..., Output]) -> Callable[..., Output]:
    """Add `--password` and `--generate`; `_chosen_password` reads them."""
    generate = click.option(
        "--generate",
        is_flag=True,
        help="Generate a password, print it, and require a new one at the next login.",
    )
    password = click.option(
        "--password", metavar="PASSWORD", help="The password; - reads it from standard input."
    )
    return password(generate(function))


@group.command("list")
@click.option(
    "--limit",
    type=click.IntRange(1, MAX_LISTED),
    help="How many to show; all by default.",
)
@click.option(
    "--search",
    metavar="TEXT",
    help="Only accounts with this text in the username, address or display name, or this id.",
)
@click.option(
    "--status",
    type=Word(Standing),
    help="Only accounts with this status; pending ones wait for their activation.",
)
@click.option("--role", type=role_choice, help="Only accounts with this role.")
def list_users(
    limit: int | None, search: str | None, status: Standing | None, role: Role | None
) -> Output:
    """List the accounts by id."""
    rt = runtime()
    with rt.reading() as session:
        matching = queries.AccountFilter(
            search, role, status, True if status is Standing.ACTIVE else None
        )
        found = queries.list_accounts(session, limit, matching)
    rows = [[a.id, a.username, a.email, a.role, a.standing] for a in found]
    text = table(["ID", "USERNAME", "E-MAIL", "ROLE", "STATUS"], rows)
    return Output(ManagedUser(many=True).dump(found), text)


@on_user("show")
def show(user: str) -> Output:
    """Show one account, and what it has to sign in with."""
    rt = runtime()
    with rt.reading() as session:
        account = users.named(session, user)
    info = ManagedUser().dump(account)
    shown = {name: value for name, value in info.items() if name != "profile"}
    quota = format_size(account.storage_quota) if account.storage_quota else "no limit"
    shown |= {"storage_used": format_size(account.storage_used), "storage_quota": quota}
    shown |= {"status": account.standing, "display_name": info["profile"]["display_name"]}
    return Output(info, details(shown | _signs_in_with(rt, account)))


def _signs_in_with(rt: Runtime, account: Account) -> dict[str, object]:
    has = credentials.summarize(rt, account.id)
    return {
        "password": has.has_password,
        "second_factor": has.second_factor,
        "passkeys": len(has.passkeys),
        "external_links": len(has.external_links),
    }


@on_user("credentials")
def show_credentials(user: str) -> Output:
    """List what USER signs in with, with the ids of passkeys and of sign-ins by other services."""
    data = CredentialsData().dump(credentials.summarize(runtime(), user))
    shown = {name: value for name, value in data.items() if name != "factors"}
    shown["passkeys"] = [f"{one['id']} {one['name']}" for one in data["passkeys"]]
    shown["external_links"] = [
        f"{one['id']} {one['provider_display_name']}" for one in data["external_links"]
    ]
    return Output(data, details(shown))


@group.command("create")
@click.option("--username", required=True, help="The name to sign in with; the address works too.")
@click.option("--email", required=True, help="The address; it counts as verified.")
@password_options
@click.option(
    "--role",
    type=role_choice,
    default=Role.USER,
    show_default=True,
    help="The account's role.",
)
@click.option(
    "--must-change-password", is_flag=True, help="Require a new password at the first login."
)
def create(
    username: str,
    email: str,
    password: str | None,
    generate: bool,
    role: Role,
    must_change_password: bool,
) -> Output:
    """Create an activated account with a verified address."""
    chosen, is_generated = _chosen_password(password, generate=generate)
    account = accounts.create(
        runtime(),
        COMMAND_LINE,
        username=username,
        email=email,
        password=chosen,
        role=role,
        must_change_password=must_change_password or is_generated,
    )
    return _with_password(account, "was created", chosen if is_generated else None)


@on_user("set-role")
@click.argument("role", type=role_choice)
def set_role(user: str, role: Role) -> Output:
    """Make USER an administrator or an ordinary user; its sessions stay open."""
    return _account(_updated(user, role=role), f"has the role {role}")


@on_user("set-password")
@password_options
def set_password(user: str, password: str | None, generate: bool) -> Output:
    """Set the password of USER and end all its sessions."""
    chosen, is_generated = _chosen_password(password, generate=generate)
    account = accounts.set_password(
        runtime(), COMMAND_LINE, user, chosen, must_change_password=is_generated
    )
    return _with_password(account, "has a new password", chosen if is_generated else None)


@on_user("enable")
def enable(user: str) -> Output:
    """Let USER sign in again."""
    account = _updated(user, status=Status.ACTIVE)
    waits = account.standing is Standing.PENDING
    return _account(account, "is enabled, and waits for its activation" if waits else "is active")


@on_user("disable")
def disable(user: str) -> Output:
    """Stop USER from signing in, and end all its sessions."""
    return _account(_updated(user, status=Status.DISABLED), "is disabled")


@on_user("require-password-change")
@click.option("--off", is_flag=True, help="No longer require it.")
def require_password_change(user: str, off: bool) -> Output:
    """Require USER to set a new password before anything else."""
    account = _updated(user, must_change_password=not off)
    return _account(account, "need not change the password" if off else "must change the password")


@on_user("verify-email")
@click.option("--off", is_flag=True, help="Take the verification back, and end all its sessions.")
def verify_email(user: str, off: bool) -> Output:
    """Mark USER's address as verified; this also activates an account that is waiting for it."""
    account = _updated(user, email_verified=not off)
    return _account(account, f"has {'no' if off else 'a'} verified address")


@on_user("set-email")
@click.argument("email")
@click.option("--verified", is_flag=True, help="The address counts as verified.")
def set_email(user: str, email: str, verified: bool) -> Output:
    """Replace the address of USER; a notice goes to the old one, and sessions go on."""
    account = addresses.set_email(runtime(), COMMAND_LINE, user, email, is_verified=verified)
    return _account(account, f"has the address {account.email}")


@on_user("send-reset-mail")
def send_reset_mail(user: str) -> Output:
    """Mail USER the link to set a new password."""
    account = addresses.send_reset_mail(runtime(), COMMAND_LINE, user)
    return _account(account, "gets a mail to set a new password")


@group.command("set-quota", cls=ValueCommand)
@user_argument
@click.argument("quota", metavar="BYTES", type=Size(0, MAX_QUOTA_BYTES))
def set_quota(user: str, quota: int) -> Output:
    """Limit the storage of USER to BYTES; 0 means no limit.

    BYTES may have a unit: 5GB is 5000 MB, 5GiB is 5120 MiB.
    """
    account = _updated(user, storage_quota=quota)
    return _account(account, f"has a quota of {format_size(quota)}" if quota else "has no quota")


@on_user("assign-group")
@click.argument("policy_group", metavar="GROUP")
def assign_group(user: str, policy_group: str) -> Output:
    """Assign USER to the policy group GROUP, an id or a name."""
    account = _updated(user, policy_group=policy_group)
    return _account(account, f"is assigned to policy group {account.policy_group_id}")


@on_user("reset-mfa")
def reset_mfa(user: str) -> Output:
    """Remove USER's authenticator app and recovery codes, and end all its sessions."""
    account, removed = credentials.reset_mfa(runtime(), COMMAND_LINE, user)
    had_none = "had no second factor; its sessions were ended"
    return _account(account, "no longer has a second factor" if removed else had_none)


@on_user("remove-passkey")
@click.argument("passkey_id", metavar="ID", type=click.IntRange(1, INT64 - 1))
@force_option
def remove_passkey(user: str, passkey_id: int, force: bool) -> Output:
    """Remove the passkey ID of USER, who is told by mail."""
    account = credentials.remove_passkey(runtime(), COMMAND_LINE, user, passkey_id, is_forced=force)
    return _account(account, "has lost the passkey")


@on_user("remove-link")
@click.argument("link_id", metavar="ID", type=click.IntRange(1, INT64 - 1))
@force_option
def remove_link(user: str, link_id: int, force: bool) -> Output:
    """Remove the sign-in ID of USER by another service; USER is told by mail."""
    account = credentials.remove_link(runtime(), COMMAND_LINE, user, link_id, is_forced=force)
    return _account(account, "has lost the sign-in by another service")


@on_user("unlock")
def unlock(user: str) -> Output:
    """Forget USER's failed sign-ins, from wherever they came."""
    return _account(credentials.unlock(runtime(), COMMAND_LINE, user), "may try again at once")


@on_user("revoke-sessions")
def revoke_sessions(user: str) -> Output:
    """Sign USER out everywhere."""
    removed = accounts.revoke_sessions(runtime(), COMMAND_LINE, user)
    return Output(
        {"removed": removed}, f"{pluralized(removed, 'session was', 'sessions were')} ended"
    )


@on_user("export")
@click.option(
    "--format",
    "kind",
    type=Word(ArchiveFormat),
    default=ArchiveFormat.JSON,
    show_default=True,
    help="One document, or an archive with the picture as well.",
)
@click.option(
    "--output",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The new file; by default gatehouse-USERNAME-DATE in this folder.",
)
def export_data(user: str, kind: ArchiveFormat, output: Path | None) -> Output:
    """Write all that is stored about USER and is not secret into a file."""
    rt = runtime()
    account, pieces = export.of_another(rt, COMMAND_LINE, user, kind)
    path = output or Path(export.file_name(rt, account, kind))
    write_new(path, pieces)
    shown = _account(account, f"was written to {path}")
    return replace(shown, data={"file": str(path), "user_id": account.id})


@on_user("delete")
@yes_option
def delete(user: str, is_sure: bool) -> Output:
    """Delete USER and everything it owns; administrators cannot be deleted."""
    with runtime().reading() as session:
        found = users.named(session, user)
    named = f"{found.username} (id {found.id}, {found.email})"
    confirm(f"Delete {named} with everything the account owns?", is_sure=is_sure)
    return _account(accounts.delete(runtime(), COMMAND_LINE, user), "was deleted")


def _chosen_password(password: str | None, *, generate: bool) -> tuple[str, bool]:
    """Return the password to set, and whether it was generated: it must be changed at next login.

    With neither option, prompt for it at a terminal; a script gets a generated one.
    """
    if password is not None and generate:
        raise click.UsageError("--password and --generate cannot be used together")
    is_asked = password is None and not generate and is_at_terminal()
    if is_asked or password == "-":
        return read_secret("Password"), False
    return (generated_password(), True) if password is None else (password, False)


def _updated(user: str, **changes: Any) -> Account:
    return accounts.update(runtime(), COMMAND_LINE, user, **changes)


def _account(account: Account, what: str) -> Output:
    return sentence(ManagedUser().dump(account), account.username, account.id, what)


def _with_password(account: Account, what: str, generated: str | None) -> Output:
    """Show the password if it was generated: only once, for it is stored nowhere."""
    shown = _account(account, f"{what}; password: {generated}" if generated else what)
    return replace(shown, data={"user": shown.data, "generated_password": generated})
