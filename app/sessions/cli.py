"""`flask sessions`: where accounts are signed in."""

import click

from app.core.access import COMMAND_LINE
from app.sessions import revocation, service
from app.sessions.schemas import SessionItem
from app.users import service as users
from app.users.cli import complete_user
from app.web.cli import Commands, Output, table
from app.web.runtime import runtime

group = Commands("sessions", help="Where accounts are signed in.")


@group.command("list")
@click.argument("user", shell_complete=complete_user)
def list_sessions(user: str) -> Output:
    """List the live sessions of USER, most recently seen first.

    At most 500 are listed; `flask users revoke-sessions` ends the others too.
    """
    rt = runtime()
    with rt.reading() as session:
        account = users.named(session, user)
    data = SessionItem(many=True).dump(service.list_sessions(rt, account.id, None))
    rows = [[s["id"], s["last_seen_at"], s["ip_address"], s["user_agent"]] for s in data]
    return Output(data, table(["ID", "LAST SEEN", "ADDRESS", "USER AGENT"], rows))


@group.command("revoke")
@click.argument("session_id", metavar="ID")
def revoke(session_id: str) -> Output:
    """End one session; its tokens fail from now on."""
    removed = revocation.revoke_any(runtime(), COMMAND_LINE, session_id)
    text = "the session was ended" if removed else "the session had already ended"
    return Output({"removed": removed}, text)
