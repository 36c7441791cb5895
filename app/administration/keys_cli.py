"""`flask keys`: the installation's secret keys; never prints the key material itself."""

from typing import Any

from app.administration import service
from app.core.keyring import SecretKey
from app.core.texts import pluralized
from app.web.cli import Commands, Output, table
from app.web.runtime import runtime
from app.web.schema import timestamp

group = Commands("keys", help="The secret keys that sign and encrypt.")


@group.command("list")
def list_keys() -> Output:
    """List the keys, the one that signs first."""
    keyring = runtime().keyring
    signing = keyring.current()
    data = [_entry(key, signing) for key in keyring.keys]
    titles = ["ID", "CREATED", "RETIRED", "SIGNS"]
    return Output(data, table(titles, [list(entry.values()) for entry in data]))


@group.command("rotate")
def rotate() -> Output:
    """Sign and encrypt with a new key; what older keys made remains valid.

    Exit 1 when a stored secret cannot be read with any key.
    """
    rotation = service.rotate_keys(runtime())
    data = {
        "key": _entry(rotation.key, rotation.key),
        "resealed": rotation.resealed,
        "unreadable": rotation.unreadable,
    }
    resealed = pluralized(rotation.resealed, "secret was", "secrets were")
    text = f"key {rotation.key.key_id} signs now; {resealed} encrypted anew"
    if not rotation.unreadable:
        return Output(data, text)
    text += f", {rotation.unreadable} cannot be read with any key: see `flask doctor`"
    return Output(data, text, exit_code=1)


def _entry(key: SecretKey, signing: SecretKey) -> dict[str, Any]:
    return {
        "id": key.key_id,
        "created_at": timestamp(key.created_at),
        "retired_at": timestamp(key.retired_at),
        "is_signing": key.key_id == signing.key_id,
    }
