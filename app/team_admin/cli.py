"""`flask teams`: TEAM is an id or a name, USER an id, a username or an e-mail address."""

from typing import Any

import click

from app.core.access import COMMAND_LINE
from app.core.texts import pluralized
from app.team_admin import service as teams
from app.teams import queries, service
from app.teams.models import Team, TeamRole
from app.teams.schemas import MemberData, TeamData
from app.users.cli import Size, complete_user, user_argument
from app.users.models import MAX_QUOTA_BYTES
from app.web.cli import Commands, Output, Word, confirm, sentence, table, yes_option
from app.web.runtime import runtime

group = Commands("teams", help="Teams, whose members share a workspace.")
role_choice = Word(TeamRole)


@group.command("create")
@click.argument("name")
@click.option(
    "--owner", required=True, shell_complete=complete_user, help="The account that owns it."
)
def create(name: str, owner: str) -> Output:
    """Create the team NAME."""
    return _shown(teams.create(runtime(), COMMAND_LINE, name, owner), "was created")


@group.command("list")
@click.option("--archived", is_flag=True, help="Include archived teams.")
def list_teams(archived: bool) -> Output:
    """List the teams by id."""
    with runtime().reading() as session:
        found = queries.list_teams(session, archived=archived)
    rows = [[t.id, t.name, t.owner_name, t.member_count, t.archived_at] for t in found]
    text = table(["ID", "NAME", "OWNER", "MEMBERS", "ARCHIVED"], rows)
    return Output(TeamData(many=True).dump(found), text)


@group.command("members")
@click.argument("team")
def members(team: str) -> Output:
    """List the members of TEAM, owners first."""
    with runtime().reading() as session:
        found = queries.list_members(session, service.named(session, team).id)
    data = MemberData(many=True).dump(found)
    rows = [[m["user_id"], m["username"], m["email"], m["role"], m["created_at"]] for m in data]
    return Output(data, table(["ID", "USERNAME", "E-MAIL", "ROLE", "SINCE"], rows))


@group.command("set-role")
@click.argument("team")
@user_argument
@click.argument("role", type=role_choice)
def set_role(team: str, user: str, role: TeamRole) -> Output:
    """Change what USER may do in TEAM; the last owner cannot be demoted."""
    changed = teams.set_role(runtime(), COMMAND_LINE, team, user, role)
    return _shown(changed, f"has {user} as {role}")


@group.command("add-member")
@click.argument("team")
@user_argument
@click.option(
    "--role",
    type=role_choice,
    default=TeamRole.MEMBER,
    show_default=True,
    help="The member's role in the team.",
)
def add_member(team: str, user: str, role: TeamRole) -> Output:
    """Add USER to TEAM."""
    changed = teams.add_member(runtime(), COMMAND_LINE, team, user, role)
    return _shown(changed, f"has {pluralized(changed.member_count, 'member', 'members')}")


@group.command("remove-member")
@click.argument("team")
@user_argument
def remove_member(team: str, user: str) -> Output:
    """Remove USER from TEAM; the last owner cannot be removed."""
    changed = teams.remove_member(runtime(), COMMAND_LINE, team, user)
    return _shown(changed, f"has {pluralized(changed.member_count, 'member', 'members')}")


@group.command("update")
@click.argument("team")
@click.option("--name", help="Another name.")
@click.option("--description", help='What the team is for; "" removes it.')
@click.option(
    "--quota", type=Size(0, MAX_QUOTA_BYTES), help="The storage in bytes; 0 means no limit."
)
def update(team: str, name: str | None, description: str | None, quota: int | None) -> Output:
    """Change TEAM's name, description or quota."""
    given = {"name": name, "description": description, "storage_quota": quota}
    changes: dict[str, Any] = {
        column: value for column, value in given.items() if value is not None
    }
    return _shown(teams.update(runtime(), COMMAND_LINE, team, **changes), "is as given")


@group.command("assign-group")
@click.argument("team")
@click.argument("policy_group", metavar="GROUP")
def assign_group(team: str, policy_group: str) -> Output:
    """Assign TEAM to the policy group GROUP, an id or a name."""
    changed = teams.update(runtime(), COMMAND_LINE, team, policy_group=policy_group)
    return _shown(changed, f"is assigned to policy group {changed.policy_group_id}")


@group.command("archive")
@click.argument("team")
@yes_option
def archive(team: str, is_sure: bool) -> Output:
    """Take TEAM out of use; it is deleted some days later."""
    with runtime().reading() as session:
        found = service.named(session, team)
    confirm(f"Archive {found.name} (id {found.id})?", is_sure=is_sure)
    return _shown(teams.archive(runtime(), COMMAND_LINE, team), "is archived")


@group.command("restore")
@click.argument("team")
def restore(team: str) -> Output:
    """Take the archived TEAM into use again."""
    return _shown(teams.restore(runtime(), COMMAND_LINE, team), "is restored")


def _shown(team: Team, what: str) -> Output:
    return sentence(TeamData().dump(team), team.name, team.id, what)
