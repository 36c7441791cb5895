"""A pure Argon2id loop, the baseline for logins: `python -m bench.argon SECONDS`."""

import json
import subprocess
import sys
from time import perf_counter, process_time

from argon2 import PasswordHasher, Type

from app.core.config import Argon2Cost

# One process per hashing thread of the service, so that they share nothing but the machine.
PROCESSES = 2
PASSWORD = "correct horse battery staple"
COST = Argon2Cost()  # as the service's default
HASHER = PasswordHasher(
    time_cost=COST.passes, memory_cost=COST.memory_kib, parallelism=COST.lanes, type=Type.ID
)


def main() -> None:
    """Verify one password repeatedly; print verifications per second, and CPU seconds for each."""
    stored = HASHER.hash(PASSWORD)
    count, cpu, began = 0, process_time(), perf_counter()
    end = began + float(sys.argv[1])
    while perf_counter() < end:
        HASHER.verify(stored, PASSWORD)
        count += 1
    result = {"rate": count / (perf_counter() - began), "cpu": (process_time() - cpu) / count}
    sys.stdout.write(json.dumps(result))


def pure_rate(seconds: float) -> float:
    """Return the total verifications per second of all processes."""
    command = [sys.executable, "-m", "bench.argon", str(seconds)]
    runs = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(PROCESSES)]
    try:
        return sum(float(json.loads(run.communicate()[0])["rate"]) for run in runs)
    finally:
        for run in runs:
            run.kill()
            run.wait()


if __name__ == "__main__":
    main()
