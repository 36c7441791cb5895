"""WebAuthn options as JSON, for pages to pass to `navigator.credentials`."""

from collections.abc import Sequence
from typing import Any

from app.passkeys import public_keys
from app.passkeys.credentials import TYPE
from app.passkeys.relying_party import RelyingParty
from app.users.models import Account

Options = dict[str, Any]


def creation(
    site: RelyingParty,
    account: Account,
    *,
    site_name: str,
    handle: str,
    challenge: str,
    seconds: int,
    excluded: Sequence[str],
) -> Options:
    """Return the options of a registration.

    `seconds` is the timeout; `excluded` are credential ids: an authenticator that already holds one
    must not create another.
    """
    options: Options = {
        "rp": {"name": site_name, "id": site.id},
        "user": {
            "id": handle,
            "name": account.username,
            "displayName": account.email.partition("@")[0] or account.username,
        },
        "challenge": challenge,
        "pubKeyCredParams": [{"type": TYPE, "alg": alg} for alg in public_keys.ALGORITHMS],
        "timeout": 1000 * seconds,
        "authenticatorSelection": {
            "residentKey": "required",
            "requireResidentKey": True,
            "userVerification": "required",
        },
        "attestation": "none",
        "extensions": {
            "credentialProtectionPolicy": "userVerificationRequired",
            "enforceCredentialProtectionPolicy": False,
            "uvm": True,
            "credProps": True,
        },
    }
    if excluded:
        options["excludeCredentials"] = [{"type": TYPE, "id": known} for known in excluded]
    return {"publicKey": options}


def request(site: RelyingParty, *, challenge: str, seconds: int, is_conditional: bool) -> Options:
    """Return the options of a sign-in, the same for every account.

    `is_conditional` requests conditional UI: the browser offers passkeys as autofill suggestions.
    """
    options: Options = {
        "publicKey": {
            "challenge": challenge,
            "timeout": 1000 * seconds,
            "rpId": site.id,
            "allowCredentials": [],
            "userVerification": "required",
            "extensions": {"uvm": True},
        }
    }
    return options | {"mediation": "conditional"} if is_conditional else options
