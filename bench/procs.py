"""Reads /proc: CPU time of process trees, memory of workers, facts about the machine."""

import os
import platform
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, sleep

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Process:
    """One entry of the process table; the CPU time includes children that have been reaped."""

    parent: int
    cpu_seconds: float


@dataclass(frozen=True)
class Sample:
    """The machine's CPU use up to one moment."""

    at: float
    busy_seconds: float
    processes: dict[int, Process]

    def tree(self, root: int) -> set[int]:
        """Return `root` and all its descendants."""
        found, fresh = set[int](), {root}
        while fresh:
            found |= fresh
            fresh = {pid for pid, p in self.processes.items() if p.parent in fresh} - found
        return found

    def tree_seconds(self, root: int) -> float:
        """Return the CPU seconds used so far by `root` and its descendants."""
        return sum(self.processes[p].cpu_seconds for p in self.tree(root) if p in self.processes)


def sample() -> Sample:
    """Take a sample of the machine."""
    return Sample(perf_counter(), _busy_seconds(), _process_table())


def _busy_seconds() -> float:
    """Return the CPU seconds of all processes, plus those that the hypervisor stole."""
    with open("/proc/stat") as stat:
        user, nice, system, _idle, _iowait, irq, softirq, steal = map(
            int, stat.readline().split()[1:9]
        )
    return (user + nice + system + irq + softirq + steal) / TICKS_PER_SECOND


def _process_table() -> dict[int, Process]:
    table = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            fields = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # the process has just ended
        table[int(name)] = Process(int(fields[1]), sum(map(int, fields[11:15])) / TICKS_PER_SECOND)
    return table


def memory(pid: int) -> float:
    """Return a process's PSS in MB: shared pages are divided among those who share them."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    raise OSError(f"process {pid} has no memory")


def foreign_load(before: Sample, after: Sample) -> float:
    """Return how many cores, on average, were busy with processes this program did not start."""
    ours = after.tree_seconds(os.getpid()) - before.tree_seconds(os.getpid())
    elapsed = after.at - before.at
    return max(0.0, (after.busy_seconds - before.busy_seconds - ours) / elapsed)


def wait_until_quiet(root: int, limit: float, seconds: float) -> None:
    """Wait until the tree of `root` has finished its work and the rest of the machine is idle.

    Work left over from one run would be charged to the next. Give up waiting after `seconds`.
    """
    end = perf_counter() + seconds
    before = sample()
    while perf_counter() < end:
        sleep(0.3)
        after = sample()
        own = after.tree_seconds(root) - before.tree_seconds(root)
        if own < 0.02 and foreign_load(before, after) <= limit:
            return
        before = after


def machine() -> str:
    """Describe the machine in one line."""
    model = "unknown CPU"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    cores = len(os.sched_getaffinity(0))
    kernel = f"{platform.system()} {platform.release()}"
    return f"{cores} cores, {model}, {kernel}, Python {platform.python_version()}"
