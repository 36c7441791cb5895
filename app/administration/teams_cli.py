"""`flask teams`: TEAM is an id or a name, USER an id, a username or an e-mail address."""

import click

from app.administration import teams
from app.core.texts import pluralized
from app.teams import queries, service
from app.teams.models import Team, TeamRole
from app.teams.schemas import MemberData, TeamData
from app.web.cli import Commands, Output, Word, sentence, table
from app.web.runtime import runtime

group = Commands("teams", help="Teams, whose members share a workspace.")
role_choice = Word(TeamRole)


@group.command("create")
@click.argument("name")
@click.option("--owner", required=True, help="The account that owns it.")
def create(name: str, owner: str) -> Output:
    """Create the team NAME."""
    return _shown(teams.create(runtime(), name, owner), "was created")


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
    """List the members of TEAM, its owners first."""
    with runtime().reading() as session:
        found = queries.list_members(session, service.named(session, team).id)
    data = MemberData(many=True).dump(found)
    rows = [[m["user_id"], m["username"], m["email"], m["role"], m["created_at"]] for m in data]
    return Output(data, table(["ID", "USERNAME", "E-MAIL", "ROLE", "SINCE"], rows))


@group.command("set-role")
@click.argument("team")
@click.argument("user")
@click.argument("role", type=role_choice)
def set_role(team: str, user: str, role: TeamRole) -> Output:
    """Change what USER may do in TEAM; the last owner stays one."""
    changed = teams.set_role(runtime(), team, user, role)
    return _shown(changed, f"has {user} as {role}")


@group.command("add-member")
@click.argument("team")
@click.argument("user")
@click.option(
    "--role",
    type=role_choice,
    default=TeamRole.MEMBER,
    show_default=True,
    help="The member's role in the team.",
)
def add_member(team: str, user: str, role: TeamRole) -> Output:
    """Add USER to TEAM."""
    changed = teams.add_member(runtime(), team, user, role)
    return _shown(changed, f"has {pluralized(changed.member_count, 'member', 'members')}")


@group.command("remove-member")
@click.argument("team")
@click.argument("user")
def remove_member(team: str, user: str) -> Output:
    """Take USER out of TEAM; the last owner stays."""
    changed = teams.remove_member(runtime(), team, user)
    return _shown(changed, f"has {pluralized(changed.member_count, 'member', 'members')}")


@group.command("assign-group")
@click.argument("team")
@click.argument("policy_group", metavar="GROUP")
def assign_group(team: str, policy_group: str) -> Output:
    """Assign TEAM to the policy group GROUP, an id or a name."""
    changed = teams.assign_group(runtime(), team, policy_group)
    return _shown(changed, f"is assigned to policy group {changed.policy_group_id}")


@group.command("archive")
@click.argument("team")
def archive(team: str) -> Output:
    """Take TEAM out of use; it is deleted some days later."""
    return _shown(teams.archive(runtime(), team), "is archived")


def _shown(team: Team, what: str) -> Output:
    return sentence(TeamData().dump(team), team.name, team.id, what)
