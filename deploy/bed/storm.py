"""Mixed load with faults: who is told what, what becomes of the rows, how soon all is well."""

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from bench import procs
from deploy.bed.actors import Actor, Listener, Registrar, crowd
from deploy.bed.bed import Bed
from deploy.bed.faults import FAULTS, Fault, InstancesAreReplaced
from deploy.bed.ledger import Ledger

# What no log may have. A full disk loses lines, so that this is a net with holes.
UNEXPECTED = ("unexpected failure", "SIGBUS", "SIGSEGV", "Traceback")
# Memory may grow by so much between the first third of a worker's life and its end.
GROWTH_MB, GROWTH_SHARE = 8.0, 0.10


@dataclass
class Outcome:
    """One fault: when it began and ended, and when the last failure after it was told."""

    name: str
    began: float
    ended: float = 0.0
    told: int = 0
    recovery: float = 0.0


@dataclass
class Report:
    """What a run showed."""

    seconds: float
    answers: dict[str, int]
    faults: list[Outcome]
    broken: list[str]
    deeds: int
    events: int
    longest: float
    memory: list[tuple[float, float]] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    def text(self) -> str:
        """Return it for reading."""
        total = sum(self.answers.values())
        kinds = ", ".join(f"{n} {kind}" for kind, n in sorted(self.answers.items()))
        lines = [
            f"{self.seconds:.0f} s, {total} answers ({kinds}), {self.deeds} changes and"
            f" {self.events} events compared, longest answer {self.longest:.1f} s",
            "",
            "| Fault | Times | Failures told | Recovery, longest |",
            "|---|---|---|---|",
        ]
        for name in dict.fromkeys(outcome.name for outcome in self.faults):
            same = [outcome for outcome in self.faults if outcome.name == name]
            told = sum(outcome.told for outcome in same)
            recovery = max(outcome.recovery for outcome in same)
            lines.append(f"| {name} | {len(same)} | {told} | {recovery:.1f} s |")
        lines += [f"| {name} | not possible here | | |" for name in self.skipped]
        lines.append("")
        lines += [
            f"a worker's own memory: {first:.1f} MB early, {last:.1f} MB at the end"
            for first, last in self.memory
        ]
        lines += [f"BROKEN: {what}" for what in self.broken] or ["no invariant broken"]
        return "\n".join(lines)


class Storm:
    """One run: `hold` is how long a fault lasts, `rest` how long the calm after it."""

    def __init__(
        self, bed: Bed, *, recovery: float, faults: Sequence[type[Fault]] = FAULTS
    ) -> None:
        self._bed = bed
        self._faults = faults
        self._recovery = recovery
        self._ledger = Ledger()
        self._outcomes: list[Outcome] = []
        self._memory: dict[int, list[tuple[float, float]]] = {}

    def run(self, duration: float, *, hold: float, rest: float, verbose: bool = False) -> Report:
        """Run every fault in turn, round and round, until the time is over."""
        possible = [
            fault for fault in self._faults if self._bed.disks_are_small or not fault.fills_a_disk
        ]
        skipped = [fault.name for fault in self._faults if fault not in possible]
        actors = crowd(self._bed, self._ledger)
        began = time.monotonic()
        for actor in actors:
            actor.start()
        self._rest(rest)
        rounds = 0
        while True:
            for make in possible:
                if make is InstancesAreReplaced and rounds:
                    continue  # their memory is looked at from now on
                self._suffer(make(self._bed), hold, rest, verbose=verbose)
                if time.monotonic() - began >= duration and rounds:
                    break
            rounds += 1
            if time.monotonic() - began >= duration:
                break
        seconds = time.monotonic() - began
        self._end(actors)
        return self._report(seconds, actors, skipped, verbose=verbose)

    def _suffer(self, fault: Fault, hold: float, rest: float, *, verbose: bool) -> None:
        outcome = Outcome(fault.name, time.monotonic())
        self._outcomes.append(outcome)
        self._ledger.phase = fault.name
        fault.begin()
        try:
            fault.hold(hold)
        finally:
            fault.end()
        outcome.ended = time.monotonic()
        self._ledger.phase = f"after: {fault.name}"
        self._rest(rest)
        self._judge(outcome, fault)
        if verbose:
            sys.stderr.write(
                f"{fault.name}: {outcome.told} failures told,"
                f" recovered after {outcome.recovery:.1f} s\n"
            )

    def _judge(self, outcome: Outcome, fault: Fault) -> None:
        """Look at the failures told since the fault began; all of them must be its own."""
        ledger = self._ledger
        failures, ledger.failures = ledger.failures, []
        for failure in failures:
            outcome.told += 1
            if (failure.status, failure.code) not in fault.allowed:
                ledger.complain(f"during: {fault.name}: {failure}")
            outcome.recovery = max(outcome.recovery, failure.ended - outcome.ended)
        if outcome.recovery > self._recovery:
            ledger.complain(f"{fault.name}: failures {outcome.recovery:.1f} s after its end")

    def _rest(self, seconds: float) -> None:
        """Let a calm pass, at the end of which requests must go well.

        It lasts longer where they do not yet, and as long as recovery may take at the most.
        """
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(left, 1.0))
            self._look_at_memory()
        before, give_up_at = self._ledger.answers["2xx"], time.monotonic() + self._recovery
        while self._ledger.answers["2xx"] == before:
            if time.monotonic() > give_up_at:
                self._ledger.complain("nothing went well in a calm")
                return
            time.sleep(0.02)

    def _look_at_memory(self) -> None:
        for instance in self._bed.instances:
            for pid in instance.workers():
                try:
                    uss = procs.memory(pid).uss
                except (OSError, KeyError):
                    continue  # it was killed a moment ago
                self._memory.setdefault(pid, []).append((time.monotonic(), uss))

    def _end(self, actors: Sequence[Actor]) -> None:
        for actor in actors:
            actor.stopped.set()
        for actor in actors:
            actor.join(60)
            if actor.is_alive():
                self._ledger.complain(f"{actor.name} still waits for an answer")
            elif not actor.steps:
                self._ledger.complain(f"{actor.name} did nothing")

    def _report(
        self, seconds: float, actors: Sequence[Actor], skipped: list[str], *, verbose: bool
    ) -> Report:
        ledger = self._ledger
        if verbose:
            for actor in actors:
                sys.stderr.write(f"{actor.name}: {actor.steps} steps\n")
        self._bed.rt.database.close()  # its connections were cut like all others
        deeds = ledger.compare(self._bed.rt)
        for actor in actors:
            if isinstance(actor, Registrar):
                actor.compare()
        for name, text in self._bed.logs():
            for what in UNEXPECTED:
                if what in text:
                    where = text.index(what)
                    ledger.complain(f"log of {name}: {text[where : where + 1500]}")
        return Report(
            seconds=seconds,
            answers=dict(ledger.answers),
            faults=self._outcomes,
            broken=ledger.broken,
            deeds=deeds,
            events=sum(actor.events for actor in actors if isinstance(actor, Listener)),
            longest=ledger.longest,
            memory=self._growth(seconds),
            skipped=skipped,
        )

    def _growth(self, seconds: float) -> list[tuple[float, float]]:
        """Return what each worker that lived through most of the run took, early and at the end."""
        found = []
        for samples in self._memory.values():
            lived = samples[-1][0] - samples[0][0]
            if lived < 0.6 * seconds:
                continue
            third = len(samples) // 3
            early = max(uss for _, uss in samples[: max(1, third)])
            late = max(uss for _, uss in samples[2 * third :])
            found.append((early, late))
            if late > early * (1 + GROWTH_SHARE) + GROWTH_MB:
                self._ledger.complain(f"memory grew from {early:.1f} to {late:.1f} MB")
        return found
