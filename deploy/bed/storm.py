"""Mixed load with faults: which failures clients see, whether data survives, recovery times."""

import itertools
import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from deploy.bed.actors.actor import Actor
from deploy.bed.actors.cast import create_actors
from deploy.bed.actors.events import Listener
from deploy.bed.bed import Bed
from deploy.bed.faults import FAULTS, Calm, Fault
from deploy.bed.ledger import Failure, Ledger

# What no log may contain. A full disk loses log lines, so this check is best effort.
UNEXPECTED = (
    "unexpected failure",
    "SIGBUS",
    "SIGSEGV",
    "Traceback",
    "WORKER TIMEOUT",
    "are missing",  # the files of an avatar
)


@dataclass
class Outcome:
    """One fault: how long it lasted, which failures clients saw, and how soon all was well.

    `recovery` is how many seconds after the fault's end the last failure was seen, or the last
    actor had its first success. `longest` is the slowest answer, the calm afterwards included.
    """

    name: str
    ended: float = 0.0
    lasted: float = 0.0
    failures: list[Failure] = field(default_factory=list)
    recovery: float = 0.0
    longest: float = 0.0


@dataclass
class Report:
    """The results of a run."""

    seconds: float
    answers: dict[str, int]
    faults: list[Outcome]
    violations: list[str]
    changes: int
    events: int
    longest: float
    # Why a fault, by its name, was not possible.
    skipped: dict[str, str] = field(default_factory=dict)

    def text(self) -> str:
        """Return the report as human-readable text."""
        total = sum(self.answers.values())
        kinds = ", ".join(f"{n} {kind}" for kind, n in sorted(self.answers.items()))
        lines = [
            f"{self.seconds:.0f} s, {total} answers ({kinds}), {self.changes} changes and"
            f" {self.events} events compared, longest answer {self.longest:.1f} s",
            "",
            "| Fault | Times | Failures told | Recovery, longest |",
            "|---|---|---|---|",
        ]
        for name in dict.fromkeys(outcome.name for outcome in self.faults):
            same = [outcome for outcome in self.faults if outcome.name == name]
            failures_seen = sum(len(outcome.failures) for outcome in same)
            recovery = max(outcome.recovery for outcome in same)
            lines.append(f"| {name} | {len(same)} | {failures_seen} | {recovery:.1f} s |")
        lines += [f"| {name} | not possible: {why} | | |" for name, why in self.skipped.items()]
        lines.append("")
        lines += [f"BROKEN: {what}" for what in self.violations] or ["no invariant broken"]
        return "\n".join(lines)


class Storm:
    """One run: `hold` is how long a fault lasts, `rest` how long the calm after it.

    Within `recovery` seconds of a fault all must be well again: no failure comes later, every actor
    has had a success, and no answer takes longer than the fault plus that time. A machine that is
    busy with other work needs more.
    """

    def __init__(
        self,
        bed: Bed,
        *,
        recovery: float,
        faults: Sequence[type[Fault]] = FAULTS,
        people: Callable[[Bed, Ledger, float], Sequence[Actor]] = create_actors,
    ) -> None:
        self._bed = bed
        self._faults = faults
        self._people = people
        self._recovery = recovery
        self._ledger = Ledger()
        self._actors: Sequence[Actor] = ()
        self._outcomes: list[Outcome] = []
        self._longest = 0.0

    def run(self, duration: float, *, hold: float, rest: float) -> Report:
        """Run all faults in turn, repeatedly, until `duration` seconds are over."""
        skipped = {
            fault.name: obstacle
            for fault in self._faults
            if (obstacle := fault.obstacle(self._bed)) is not None
        }
        possible = [fault for fault in self._faults if fault.name not in skipped]
        # Log lines from before this run are not its own.
        logged = {name: len(text) for name, text in self._bed.logs()}
        self._actors = self._people(self._bed, self._ledger, hold)
        began = time.monotonic()
        for actor in self._actors:
            actor.start()
        try:
            self._ledger.phase = "before the first fault"
            self._calm(rest)
            # The first round is never cut short.
            self._round(possible, math.inf, hold, rest)
            while possible and time.monotonic() - began < duration:
                self._round(possible, began + duration, hold, rest)
            seconds = time.monotonic() - began
        finally:
            self._end()
        self._check_logs(logged)
        return self._report(seconds, skipped)

    def _round(self, faults: Sequence[type[Fault]], until: float, hold: float, rest: float) -> None:
        for make in faults:
            self._run_fault(make(self._bed), hold, rest)
            if time.monotonic() >= until:
                return

    def _run_fault(self, fault: Fault, hold: float, rest: float) -> None:
        outcome = Outcome(fault.name)
        self._outcomes.append(outcome)
        self._ledger.phase = fault.name
        began = time.monotonic()
        try:
            fault.begin()
            fault.hold(hold)
        finally:
            fault.end()
        outcome.ended = time.monotonic()
        outcome.lasted = outcome.ended - began
        self._ledger.phase = f"after: {fault.name}"
        outcome.recovery = self._rest(rest)
        self._judge(outcome, fault)
        sys.stderr.write(
            f"{fault.name}: {len(outcome.failures)} failures told,"
            f" recovered after {outcome.recovery:.1f} s\n"
        )

    def _calm(self, seconds: float) -> None:
        """Wait for some time in which nothing may fail."""
        calm = Outcome(Calm.name, ended=time.monotonic())
        calm.recovery = self._rest(seconds)
        self._judge(calm, Calm(self._bed))

    def _judge(self, outcome: Outcome, fault: Fault) -> None:
        """Judge the failures since the last call; the fault must explain every one."""
        ledger = self._ledger
        failures, outcome.longest = ledger.take_failures()
        self._longest = max(self._longest, outcome.longest)
        for failure in failures:
            outcome.failures.append(failure)
            if not fault.explains(failure):
                ledger.add_violation(f"not explained: {failure}")
            outcome.recovery = max(outcome.recovery, failure.ended - outcome.ended)
        if outcome.recovery > self._recovery:
            ledger.add_violation(f"all was well only {outcome.recovery:.1f} s after its end")
        if outcome.longest > outcome.lasted + self._recovery:
            ledger.add_violation(f"an answer took {outcome.longest:.1f} s")
        was_noticed = outcome.failures or outcome.longest > outcome.lasted / 2
        if not fault.was_effective or (fault.must_be_noticed and not was_noticed):
            ledger.add_violation("nobody felt anything of it")

    def _rest(self, seconds: float) -> float:
        """Wait out a calm; return after how many seconds every actor had had a success in it.

        It is extended, up to the time allowed for recovery, while an actor has not had one.
        """
        began, passed, recovery = time.monotonic(), 0.0, 0.0
        before = {actor: actor.progress for actor in self._actors}
        waiting = set(self._actors)
        while passed < seconds or (waiting and passed < self._recovery):
            time.sleep(0.05)
            passed = time.monotonic() - began
            if waiting:
                recovery = passed
            waiting = {actor for actor in waiting if actor.progress == before[actor]}
        for actor in waiting:
            self._ledger.add_violation(f"{actor.name}: nothing went well for {passed:.1f} s")
        return recovery

    def _end(self) -> None:
        self._ledger.phase = "at the end"
        for actor in self._actors:
            actor.stopped.set()
        for actor in self._actors:
            actor.join(60)
            if actor.is_alive():
                self._ledger.add_violation(f"{actor.name} still waits for an answer")
            elif not actor.progress:
                self._ledger.add_violation(f"{actor.name}: nothing went well")
        self._judge(Outcome(Calm.name, ended=time.monotonic()), Calm(self._bed))

    def _check_logs(self, logged: dict[str, int]) -> None:
        """Complain about unexpected text in the logs beyond the lengths in `logged`."""
        for name, text in self._bed.logs():
            new = text[logged.get(name, 0) :]
            for what in UNEXPECTED:
                if what in new:
                    first, *more = new[new.index(what) :].splitlines()
                    # Up to the next entry, which begins with its time.
                    told = [first, *itertools.takewhile(lambda line: line[:2] != "20", more)]
                    text = "\n".join(told)[-2500:]
                    self._ledger.add_violation(f"log of {name}, {what!r}: {text}")

    def _report(self, seconds: float, skipped: dict[str, str]) -> Report:
        ledger = self._ledger
        self._bed.rt.database.close()  # its connections were cut like all the others
        changes = ledger.compare(self._bed.rt)
        for actor in self._actors:
            actor.compare()
        return Report(
            seconds=seconds,
            answers=dict(ledger.answers),
            faults=self._outcomes,
            violations=ledger.violations,
            changes=changes,
            events=sum(actor.events for actor in self._actors if isinstance(actor, Listener)),
            longest=self._longest,
            skipped=skipped,
        )
