"""`flask storage`: policies and groups; POLICY and GROUP may always be an id or a name.

`bootstrap` reports the set-up state, which this layer may not import: `installation` adds it.
"""

from typing import Any

import click

from app.core.access import COMMAND_LINE
from app.core.texts import pluralized
from app.storage_policies import groups, migration, service
from app.storage_policies.models import StoragePolicyGroup
from app.storage_policies.schemas import ManagedGroup, MigratedAssignmentsData, PolicyData
from app.web.cli import Commands, Output, confirm, progress, sentence, table, yes_option
from app.web.runtime import runtime

group = Commands("storage", help="Storage policies and the groups accounts are assigned to.")


@group.command("policies")
def list_policies() -> Output:
    """List the storage policies."""
    data = PolicyData(many=True).dump(service.list_policies(runtime()))
    rows = [[p["id"], p["name"], p["connector_id"], p["is_default"]] for p in data]
    return Output(data, table(["ID", "NAME", "CONNECTOR", "DEFAULT"], rows))


@group.command("groups")
def list_groups() -> Output:
    """List the policy groups and their policies."""
    data = ManagedGroup(many=True).dump(service.list_groups(runtime()))
    rows = [[g["id"], g["name"], g["is_enabled"], g["is_default"], _policies_of(g)] for g in data]
    return Output(data, table(["ID", "NAME", "ENABLED", "DEFAULT", "POLICIES"], rows))


@group.command("create-policy")
@click.argument("name")
def create_policy(name: str) -> Output:
    """Create the storage policy NAME for files on this machine."""
    made = service.create_policy(runtime(), COMMAND_LINE, name)
    return sentence(PolicyData().dump(made), made.name, made.id, "was created")


@group.command("create-group")
@click.argument("name")
@click.option(
    "--policy",
    "policies",
    multiple=True,
    required=True,
    help="A policy; may be repeated, the first one is tried first.",
)
@click.option("--default", "is_default", is_flag=True, help="New accounts get this group.")
def create_group(name: str, policies: tuple[str, ...], is_default: bool) -> Output:
    """Create the policy group NAME from one or more policies."""
    items = groups.in_order(policies)
    made = groups.create(runtime(), COMMAND_LINE, name, items, is_default=is_default)
    return _shown(made, "was created")


@group.command("update-group")
@click.argument("policy_group", metavar="GROUP")
@click.option("--name", help="Another name.")
@click.option("--description", help='What the group is for; "" removes it.')
@click.option(
    "--policy",
    "policies",
    multiple=True,
    help="A policy in place of those it has; may be repeated, the first one is tried first.",
)
def update_group(
    policy_group: str, name: str | None, description: str | None, policies: tuple[str, ...]
) -> Output:
    """Change GROUP's name, description or policies."""
    items = groups.in_order(policies) if policies else None
    given = {"name": name, "description": description, "items": items}
    changes = {column: value for column, value in given.items() if value is not None}
    return _shown(_updated(policy_group, **changes), "is as given")


@group.command("set-default")
@click.argument("policy_group", metavar="GROUP")
def set_default(policy_group: str) -> Output:
    """Make GROUP the one that new accounts get."""
    return _shown(_updated(policy_group, is_default=True), "is the default")


@group.command("enable-group")
@click.argument("policy_group", metavar="GROUP")
def enable_group(policy_group: str) -> Output:
    """Let accounts and teams be assigned to GROUP."""
    return _shown(_updated(policy_group, is_enabled=True), "is enabled")


@group.command("disable-group")
@click.argument("policy_group", metavar="GROUP")
def disable_group(policy_group: str) -> Output:
    """Stop accounts and teams from being assigned to GROUP, unless it is the default or any are."""
    return _shown(_updated(policy_group, is_enabled=False), "is disabled")


@group.command("delete-group")
@click.argument("policy_group", metavar="GROUP")
@yes_option
def delete_group(policy_group: str, is_sure: bool) -> Output:
    """Delete GROUP; refused for the default, and while any account or team is assigned to it."""
    with runtime().reading() as session:
        found = service.get_group(session, policy_group)
    confirm(f"Delete {found.name} (id {found.id})?", is_sure=is_sure)
    deleted = groups.delete(runtime(), COMMAND_LINE, policy_group)
    return _shown(deleted, "was deleted")


@group.command("migrate-assignments")
@click.argument("source")
@click.argument("target")
def migrate_assignments(source: str, target: str) -> Output:
    """Assign all users and teams of the group SOURCE to the group TARGET."""
    progress("moving the assignments")
    done = migration.migrate_assignments(runtime(), COMMAND_LINE, source, target)
    users, teams = done.affected_users, done.affected_teams
    text = (
        f"moved {pluralized(users, 'user', 'users')} and {pluralized(teams, 'team', 'teams')}"
        f" from policy group {done.source_group_id} to {done.target_group_id}"
    )
    return Output(MigratedAssignmentsData().dump(done), text)


def _updated(policy_group: str, **changes: Any) -> StoragePolicyGroup:
    return groups.update(runtime(), COMMAND_LINE, policy_group, **changes)


def _shown(found: StoragePolicyGroup, what: str) -> Output:
    return sentence(ManagedGroup().dump(found), found.name, found.id, what)


def _policies_of(group: dict[str, list[dict[str, dict[str, str]]]]) -> list[str]:
    return [item["policy"]["name"] for item in group["items"]]
