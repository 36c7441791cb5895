"""All scenarios. A new group is a module with its own `SCENARIOS`, added to this table."""

from bench.lab import Scenario
from bench.scenarios import avatars, logins, mails, memory, requests, scale

SCENARIOS: tuple[Scenario, ...] = (
    *requests.SCENARIOS,
    *avatars.SCENARIOS,
    *logins.SCENARIOS,
    *mails.SCENARIOS,
    *memory.SCENARIOS,
    *scale.SCENARIOS,
)
