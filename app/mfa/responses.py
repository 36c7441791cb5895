"""The wire form of second factors (spec 02 §1.4 to §1.8)."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from app.mfa.queries import ListedFactor
from app.mfa.totp_setup import Enabled, StartedSetup
from app.web.schema import timestamp


def mfa_data(factors: Sequence[ListedFactor]) -> dict[str, Any]:
    """Return the payload of GET /auth/mfa."""
    return {
        "enabled": bool(factors),
        "factors": [_factor(factor) for factor in factors],
        "recovery_codes_remaining": factors[0].recovery_codes_remaining if factors else 0,
    }


def started_setup(started: StartedSetup) -> dict[str, Any]:
    """Return the payload of a started setup."""
    return asdict(started)


def enabled(made: Enabled) -> dict[str, Any]:
    """Return the payload of a finished setup."""
    return {"factor": _factor(made.factor), "recovery_codes": made.recovery_codes}


def _factor(factor: ListedFactor) -> dict[str, Any]:
    return {
        "id": factor.id,
        "method": factor.method,
        "name": factor.name,
        "enabled_at": timestamp(factor.enabled_at),
        "last_used_at": timestamp(factor.last_used_at),
    }
