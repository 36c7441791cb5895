"""`flask storage`: the listings; what needs other areas is added by `administration`."""

from app.storage_policies import responses, service
from app.web.cli import Commands, Shown, table
from app.web.runtime import runtime

group = Commands("storage", help="Storage policies and the groups accounts are assigned to.")


@group.command("policies")
def policies() -> Shown:
    """List the storage policies."""
    data = [responses.policy(row) for row in service.list_policies(runtime())]
    rows = [[p["id"], p["name"], p["connector_id"], p["is_default"]] for p in data]
    return Shown(data, table(["ID", "NAME", "CONNECTOR", "DEFAULT"], rows))


@group.command("groups")
def groups() -> Shown:
    """List the policy groups and their policies."""
    data = [responses.group(row) for row in service.list_groups(runtime())]
    rows = [[g["id"], g["name"], g["is_enabled"], g["is_default"], _policies_of(g)] for g in data]
    return Shown(data, table(["ID", "NAME", "ENABLED", "DEFAULT", "POLICIES"], rows))


def _policies_of(group: dict[str, list[dict[str, dict[str, str]]]]) -> list[str]:
    return [item["policy"]["name"] for item in group["items"]]
