"""`flask storage bootstrap`: it reports the set-up state, so it sits above the storage area."""

from app.administration import service
from app.storage_policies import service as storage
from app.storage_policies.cli import group
from app.web.cli import Output
from app.web.runtime import runtime


@group.command("bootstrap")
def bootstrap() -> Output:
    """Complete the default storage route and assign everybody without a group; may be run again."""
    rt = runtime()
    route = storage.bootstrap(rt, is_audited=True)
    state = service.setup_state(rt)
    data = {"policy_id": route.policy_id, "group_id": route.group_id, "setup_state": state.value}
    text = f"policy {route.policy_id}, group {route.group_id}; the installation is {state.value}"
    return Output(data, text)


__all__ = ["group"]
