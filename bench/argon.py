"""A pure Argon2id loop, the baseline for logins."""

from concurrent.futures import ProcessPoolExecutor
from time import perf_counter

from argon2 import PasswordHasher, Type

from app.core.config import Argon2Cost
from bench.api import PASSWORD
from bench.load import SPAWN

# One process per core of the service's two workers, so that they share nothing but the machine.
PROCESSES = 2


def pure_rate(seconds: float) -> float:
    """Return the total verifications per second of all processes, at the service's own cost."""
    with ProcessPoolExecutor(PROCESSES, SPAWN) as pool:
        list(pool.map(_verify, [0.0] * PROCESSES))  # so that all have started
        return sum(pool.map(_verify, [seconds] * PROCESSES))


def _verify(seconds: float) -> float:
    cost = Argon2Cost()
    hasher = PasswordHasher(
        time_cost=cost.passes, memory_cost=cost.memory_kib, parallelism=cost.lanes, type=Type.ID
    )
    stored = hasher.hash(PASSWORD)
    count, began = 0, perf_counter()
    while perf_counter() < began + seconds:
        hasher.verify(stored, PASSWORD)
        count += 1
    return count / (perf_counter() - began)
