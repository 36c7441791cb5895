"""`flask invitations`: create, list, resend and revoke invitations."""

import click

from app.core.access import COMMAND_LINE
from app.invitations import service
from app.invitations.schemas import AdminInvitation, MailedInvitation
from app.settings import keys
from app.web.cli import Commands, Output, details, table
from app.web.runtime import runtime

group = Commands("invitations", help="Invitations by mail to create an account.")


@group.command("create")
@click.argument("email")
@click.option(
    "--ttl",
    "ttl_seconds",
    metavar="SECS",
    type=click.IntRange(1, keys.YEAR),
    help="How many seconds it is valid, up to a year; auth_user_invitation_ttl_secs by default.",
)
def create(email: str, ttl_seconds: int | None) -> Output:
    """Invite EMAIL by mail and print the link; earlier invitations of EMAIL are revoked."""
    return _mailed(service.create(runtime(), COMMAND_LINE, email=email, ttl_seconds=ttl_seconds))


@group.command("resend")
@click.argument("invitation_id", metavar="ID")
def resend(invitation_id: str) -> Output:
    """Invite the address of an invitation once more; the new link replaces the old one."""
    return _mailed(service.resend(runtime(), COMMAND_LINE, invitation_id))


def _mailed(made: service.CreatedInvitation) -> Output:
    data = MailedInvitation().dump(made.invitation)
    data |= {"invitation_url": made.url, "token": made.token}
    shown = ("id", "email", "expires_at", "invitation_url", "token")
    return Output(data, details({name: data[name] for name in shown}))


@group.command("list")
def list_invitations() -> Output:
    """List the invitations, newest first."""
    data = AdminInvitation(many=True).dump(service.list_invitations(runtime()))
    rows = [[i["id"], i["email"], i["status"], i["created_at"], i["expires_at"]] for i in data]
    return Output(data, table(["ID", "E-MAIL", "STATUS", "CREATED", "EXPIRES"], rows))


@group.command("revoke")
@click.argument("invitation_id", metavar="ID")
def revoke(invitation_id: str) -> Output:
    """Revoke an invitation; its link fails from now on."""
    revoked = service.revoke(runtime(), COMMAND_LINE, invitation_id)
    text = f"the invitation of {revoked.email} was revoked"
    return Output(AdminInvitation().dump(revoked), text)
