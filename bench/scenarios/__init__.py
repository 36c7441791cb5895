"""All scenarios. A new group is a module with its own `SCENARIOS`, added to this table."""

from bench.lab import Scenario
from bench.scenarios import logins, mails, memory, requests, scale, streams

SCENARIOS: tuple[Scenario, ...] = (
    *requests.SCENARIOS,
    *logins.SCENARIOS,
    *mails.SCENARIOS,
    *memory.SCENARIOS,
    *scale.SCENARIOS,
    *streams.SCENARIOS,
)
