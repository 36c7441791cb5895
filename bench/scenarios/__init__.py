"""All scenarios. A new group is a module with its own `SCENARIOS`, added to this table."""

from bench.lab import Scenario
from bench.scenarios import (
    assignments,
    avatars,
    external_auth,
    logins,
    mails,
    memory,
    passkeys,
    peers,
    requests,
    scale,
    second_factors,
    streams,
)

SCENARIOS: tuple[Scenario, ...] = (
    *requests.SCENARIOS,
    *avatars.SCENARIOS,
    *logins.SCENARIOS,
    *peers.SCENARIOS,
    *second_factors.SCENARIOS,
    *passkeys.SCENARIOS,
    *external_auth.SCENARIOS,
    *mails.SCENARIOS,
    *memory.SCENARIOS,
    *scale.SCENARIOS,
    *streams.SCENARIOS,
    *assignments.SCENARIOS,
)
