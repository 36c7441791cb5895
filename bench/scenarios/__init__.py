"""All scenarios by what they are about. A new one is added to its module's `SCENARIOS`."""

from bench.lab import Group, Scenario
from bench.scenarios import (
    assignments,
    avatars,
    external_auth,
    least,
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

# In the order they are measured in, so that the peers stand beside what they are compared with.
GROUPS = (
    Group(
        "Sessions and password logins",
        (*requests.SCENARIOS, *logins.SCENARIOS, *memory.SCENARIOS, *scale.SCENARIOS),
    ),
    Group("The least there is", least.SCENARIOS),
    Group("Peers", peers.SCENARIOS),
    Group("Accounts by mail", mails.SCENARIOS),
    Group("Second factors", second_factors.SCENARIOS),
    Group("Passkeys", passkeys.SCENARIOS),
    Group("External sign-in", external_auth.SCENARIOS),
    Group("Avatars", avatars.SCENARIOS),
    Group("Live events and assignments", (*streams.SCENARIOS, *assignments.SCENARIOS)),
)
SCENARIOS: tuple[Scenario, ...] = tuple(
    scenario for group in GROUPS for scenario in group.scenarios
)
