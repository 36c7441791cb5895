"""The number of connections each worker holds, in memory shared by all workers of a master."""

import math
import mmap
from collections.abc import Iterator
from dataclasses import dataclass, field

SLOTS = 512
LIVE, OPEN, WAKES = range(3)
WIDTH = 3
# The cell after the slots, which says where the used part of the table ends.
END = SLOTS * WIDTH
WRAP = 1 << 32
# A worker may exceed its share by one part in SLACK_DIVISOR of what it holds.
SLACK_DIVISOR = 8
# Accepting this many at once blocks the worker's event loop for two or three milliseconds.
MAX_AT_ONCE = 64


@dataclass
class ConnectionTable:
    """One slot per worker, created in the master and inherited by every fork.

    A slot has one writer at a time: the master before and after the worker's life, the worker
    in between. So there are no locks; a reader may see a slightly stale value, which can cost
    balance but never a connection.
    """

    _cells: memoryview = field(
        default_factory=lambda: memoryview(mmap.mmap(-1, (END + 1) * 4)).cast("I")
    )
    _taken: set[int] = field(default_factory=set)

    def take(self) -> "Share":
        """Assign a slot to the worker about to be forked; called in the master.

        During a reload old and new workers coexist. Should the slots ever run out, workers share
        the last one: their counts are then wrong, and connections less evenly balanced.
        """
        slot = next((n for n in range(SLOTS - 1) if n not in self._taken), SLOTS - 1)
        self._taken.add(slot)
        self._clear(slot)
        self._cells[END] = max(self._cells[END], (slot + 1) * WIDTH)
        return Share(self._cells, slot)

    def give_back(self, share: "Share") -> None:
        """Free the slot of a dead worker, however it died; called in the master."""
        self._clear(share.slot)
        self._taken.discard(share.slot)

    def _clear(self, slot: int) -> None:
        for cell in range(slot * WIDTH, (slot + 1) * WIDTH):
            self._cells[cell] = 0


class Share:
    """One worker's slot, and its view of the others."""

    def __init__(self, cells: memoryview, slot: int) -> None:
        self.slot = slot
        self._cells = cells
        self._base = slot * WIDTH

    @property
    def open(self) -> int:
        """The number of connections this worker holds."""
        return int(self._cells[self._base + OPEN])

    def join(self) -> None:
        """Mark this worker as accepting connections."""
        self._cells[self._base + LIVE] = 1

    def leave(self) -> None:
        """Mark this worker as no longer accepting, so that the others stop deferring to it."""
        self._cells[self._base + LIVE] = 0

    def opened(self) -> None:
        """Count a connection just accepted."""
        self._cells[self._base + OPEN] += 1

    def closed(self) -> None:
        """Count a connection that ended."""
        self._cells[self._base + OPEN] -= 1

    def record_wakeup(self) -> None:
        """Show the other workers that this one is attending to its listener."""
        cell = self._base + WAKES
        self._cells[cell] = (self._cells[cell] + 1) % WRAP

    def accept_quota(self, waiting: int) -> int:
        """Return how many of the `waiting` connections to accept so that all workers are level.

        A worker that already holds its share, and has waited in vain for those that hold fewer,
        accepts a few more: the more it holds, the more rarely it gets to its listener.
        """
        held = [held for _, held in self._others()]
        missing = math.ceil((self.open + sum(held) + waiting) / (1 + len(held))) - self.open
        return min(missing if missing > 0 else self.slack, MAX_AT_ONCE)

    @property
    def slack(self) -> int:
        """The number of extra connections that hardly matter beside those this worker holds."""
        return 1 + self.open // SLACK_DIVISOR

    def rivals(self) -> list[tuple[tuple[int, int], bool]]:
        """Return slot and wake-up count of each other live worker, and whether it holds fewer."""
        mine, cells = self.open, self._cells
        return [((base, cells[base + WAKES]), held < mine) for base, held in self._others()]

    def _others(self) -> Iterator[tuple[int, int]]:
        """Yield slot and number of connections of each other live worker."""
        cells = self._cells
        for base in range(0, cells[END], WIDTH):
            if cells[base + LIVE] and base != self._base:
                yield base, cells[base + OPEN]
