"""`flask storage`: policies and groups; POLICY and GROUP may always be an id or a name.

`bootstrap` reports the set-up state, which this layer may not import: `administration` adds it.
"""

import click

from app.core.texts import pluralized
from app.storage_policies import migration, service
from app.storage_policies.models import StoragePolicyGroup
from app.storage_policies.schemas import GroupData, MigratedAssignmentsData, PolicyData
from app.web.cli import Commands, Output, sentence, table
from app.web.runtime import runtime

WITHOUT_DEFAULT = (
    "; no group is the default now, so no accounts can be made until there is one: "
    "`flask storage set-default GROUP`, or `flask storage bootstrap` for a new one"
)

group = Commands("storage", help="Storage policies and the groups accounts are assigned to.")


@group.command("policies")
def policies() -> Output:
    """List the storage policies."""
    data = PolicyData(many=True).dump(service.list_policies(runtime()))
    rows = [[p["id"], p["name"], p["connector_id"], p["is_default"]] for p in data]
    return Output(data, table(["ID", "NAME", "CONNECTOR", "DEFAULT"], rows))


@group.command("groups")
def groups() -> Output:
    """List the policy groups and their policies."""
    data = GroupData(many=True).dump(service.list_groups(runtime()))
    rows = [[g["id"], g["name"], g["is_enabled"], g["is_default"], _policies_of(g)] for g in data]
    return Output(data, table(["ID", "NAME", "ENABLED", "DEFAULT", "POLICIES"], rows))


@group.command("create-policy")
@click.argument("name")
def create_policy(name: str) -> Output:
    """Create the storage policy NAME for files on this machine."""
    made = service.create_policy(runtime(), name)
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
    """Create the policy group NAME of one or more policies."""
    made = service.create_group(runtime(), name, policies, is_default=is_default)
    return _shown(made, "was created")


@group.command("set-default")
@click.argument("policy_group", metavar="GROUP")
def set_default(policy_group: str) -> Output:
    """Make GROUP the one that new accounts get."""
    return _shown(service.set_default(runtime(), policy_group), "is the default")


@group.command("enable-group")
@click.argument("policy_group", metavar="GROUP")
def enable_group(policy_group: str) -> Output:
    """Let accounts and teams be assigned to GROUP."""
    return _shown(service.enable_group(runtime(), policy_group), "is enabled")


@group.command("disable-group")
@click.argument("policy_group", metavar="GROUP")
def disable_group(policy_group: str) -> Output:
    """Let nobody be assigned to GROUP any more; refused while somebody is."""
    return _shown(service.disable_group(runtime(), policy_group), "is disabled")


@group.command("delete-group")
@click.argument("policy_group", metavar="GROUP")
def delete_group(policy_group: str) -> Output:
    """Delete GROUP; refused while somebody is assigned to it."""
    deleted = service.delete_group(runtime(), policy_group)
    return _shown(deleted, "was deleted" + WITHOUT_DEFAULT * deleted.is_default)


@group.command("migrate-assignments")
@click.argument("source")
@click.argument("target")
def migrate_assignments(source: str, target: str) -> Output:
    """Assign all users and teams of the group SOURCE to the group TARGET."""
    done = migration.migrate_named(runtime(), source, target)
    users, teams = done.affected_users, done.affected_teams
    text = (
        f"moved {pluralized(users, 'user', 'users')} and {pluralized(teams, 'team', 'teams')}"
        f" from policy group {done.source_group_id} to {done.target_group_id}"
    )
    return Output(MigratedAssignmentsData().dump(done), text)


def _shown(found: StoragePolicyGroup, what: str) -> Output:
    return sentence(GroupData().dump(found), found.name, found.id, what)


def _policies_of(group: dict[str, list[dict[str, dict[str, str]]]]) -> list[str]:
    return [item["policy"]["name"] for item in group["items"]]
