"""`flask users`: accounts. USER is an id, a username or an e-mail address everywhere."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import click

from app.administration import accounts
from app.core.texts import format_size, parse_size, pluralized
from app.core.tokens import generated_password
from app.users import queries as users_queries
from app.users import service as users
from app.users.models import Account, Role, Standing, Status
from app.users.schemas import ManagedUser
from app.web.cli import (
    Commands,
    Output,
    ValueCommand,
    Word,
    details,
    is_at_terminal,
    read_secret,
    sentence,
    table,
)
from app.web.runtime import runtime

MAX_LISTED = 2**31 - 1

group = Commands("users", help="Accounts; USER is an id, a username or an e-mail address.")
role_choice = Word(Role)


def on_user(name: str) -> Callable[[Callable[..., Output]], click.Command]:
    """Make a command about one account."""
    return lambda function: group.command(name)(click.argument("user")(function))


class Size(click.IntRange):
    """A number of bytes, or a size with its unit."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number of bytes."""
        try:
            return super().convert(parse_size(value), param, ctx)
        except ValueError as error:
            self.fail(f"{value!r} {error}", param, ctx)


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
    "--search", metavar="TEXT", help="Only accounts with this text in the username or address."
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
    with rt.reading() as connection:
        found = users_queries.list_accounts(
            connection, limit, search=search, standing=status, role=role
        )
    rows = [[a.id, a.username, a.email, a.role, a.standing] for a in found]
    text = table(["ID", "USERNAME", "E-MAIL", "ROLE", "STATUS"], rows)
    return Output(ManagedUser(many=True).dump(found), text)


@on_user("show")
def show(user: str) -> Output:
    """Show one account, and what it has to sign in with."""
    rt = runtime()
    with rt.reading() as connection:
        account = users.named(connection, user)
    info = ManagedUser().dump(account)
    shown = {name: value for name, value in info.items() if name != "profile"}
    quota = format_size(account.storage_quota) if account.storage_quota else "no limit"
    shown |= {"storage_used": format_size(account.storage_used), "storage_quota": quota}
    shown |= {"status": account.standing, "display_name": info["profile"]["display_name"]}
    return Output(info, details(shown | accounts.credentials(rt, account)))


@group.command("create")
@click.option("--username", required=True, help="The name to sign in with; the address works, too.")
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
    """Make USER an administrator or an ordinary user; its sessions go on."""
    return _account(accounts.set_role(runtime(), user, role), f"has the role {role}")


@on_user("set-password")
@password_options
def set_password(user: str, password: str | None, generate: bool) -> Output:
    """Set the password of USER and end all its sessions."""
    chosen, is_generated = _chosen_password(password, generate=generate)
    account = accounts.set_password(runtime(), user, chosen, must_change_password=is_generated)
    return _with_password(account, "has a new password", chosen if is_generated else None)


@on_user("enable")
def enable(user: str) -> Output:
    """Let USER sign in again."""
    account = accounts.set_status(runtime(), user, Status.ACTIVE)
    waits = account.standing is Standing.PENDING
    return _account(account, "is enabled, and waits for its activation" if waits else "is active")


@on_user("disable")
def disable(user: str) -> Output:
    """Keep USER from signing in, and end all its sessions."""
    return _account(accounts.set_status(runtime(), user, Status.DISABLED), "is disabled")


@on_user("require-password-change")
@click.option("--off", is_flag=True, help="No longer require it.")
def require_password_change(user: str, off: bool) -> Output:
    """Require USER to set a new password before anything else."""
    account = accounts.require_password_change(runtime(), user, required=not off)
    return _account(account, "need not change the password" if off else "must change the password")


@on_user("verify-email")
def verify_email(user: str) -> Output:
    """Mark USER's address as verified; this activates an account that waits for it."""
    return _account(accounts.verify_email(runtime(), user), "has a verified address")


@group.command("set-quota", cls=ValueCommand)
@click.argument("user")
@click.argument("quota", metavar="BYTES", type=Size(0, 2**53))
def set_quota(user: str, quota: int) -> Output:
    """Limit the storage of USER to BYTES; 0 means no limit.

    BYTES may have a unit: 5GB is 5000 MB, 5GiB is 5120 MiB.
    """
    account = accounts.set_quota(runtime(), user, quota)
    return _account(account, f"has a quota of {format_size(quota)}" if quota else "has no quota")


@on_user("assign-group")
@click.argument("policy_group", metavar="GROUP")
def assign_group(user: str, policy_group: str) -> Output:
    """Assign USER to the policy group GROUP, an id or a name."""
    account = accounts.assign_group(runtime(), user, policy_group)
    return _account(account, f"is assigned to policy group {account.policy_group_id}")


@on_user("reset-mfa")
def reset_mfa(user: str) -> Output:
    """Remove USER's authenticator app and recovery codes, and end all its sessions."""
    account, removed = accounts.reset_mfa(runtime(), user)
    had_none = "had no second factor; its sessions were ended"
    return _account(account, "has no second factor any more" if removed else had_none)


@on_user("revoke-sessions")
def revoke_sessions(user: str) -> Output:
    """Sign USER out everywhere."""
    removed = accounts.revoke_sessions(runtime(), user)
    return Output(
        {"removed": removed}, f"{pluralized(removed, 'session was', 'sessions were')} ended"
    )


@on_user("delete")
def delete(user: str) -> Output:
    """Delete USER with everything it owns; administrators are not deleted."""
    return _account(accounts.delete(runtime(), user), "was deleted")


def _chosen_password(password: str | None, *, generate: bool) -> tuple[str, bool]:
    """Return the password to set, and whether it was generated: it must be changed at next login.

    With neither option, prompt for it at a terminal; a script gets a generated one.
    """
    if password is not None and generate:
        raise click.UsageError("--password and --generate exclude each other")
    is_asked = password is None and not generate and is_at_terminal()
    if is_asked or password == "-":
        return read_secret("Password"), False
    return (generated_password(), True) if password is None else (password, False)


def _account(account: Account, what: str) -> Output:
    return sentence(ManagedUser().dump(account), account.username, account.id, what)


def _with_password(account: Account, what: str, generated: str | None) -> Output:
    """Show the password if it was generated: only once, for it is stored nowhere."""
    shown = _account(account, f"{what}; password: {generated}" if generated else what)
    return replace(shown, data={"user": shown.data, "generated_password": generated})
