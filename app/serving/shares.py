"""How many connections each worker holds, in memory that all workers of a master share."""

import math
import mmap
from collections.abc import Iterator
from dataclasses import dataclass, field

SLOTS = 512
LIVE, OPEN, WAKES = range(3)
WIDTH = 3
# The cell behind the slots: where the used part of the table ends.
END = SLOTS * WIDTH
WRAP = 1 << 32
# A worker may be ahead of the others by one part in so many of what it holds.
HEADWAY = 8
# To take so many keeps others waiting for two or three milliseconds.
MAX_AT_ONCE = 64


@dataclass
class ConnectionTable:
    """One slot per worker, created in the master and inherited by every fork.

    A slot has one writer at a time: the master before and after the worker's life, the worker
    in between. So there are no locks; a reader may see a value that is a moment old, which can
    cost evenness but never a connection.
    """

    _cells: memoryview = field(
        default_factory=lambda: memoryview(mmap.mmap(-1, (END + 1) * 4)).cast("I")
    )
    _taken: set[int] = field(default_factory=set)

    def take(self) -> "Share":
        """Give a slot to the worker about to be forked; called in the master.

        A reload has old and new workers side by side. Should the slots ever run out, workers share
        the last one: their counts are then wrong, and connections less even.
        """
        slot = next((n for n in range(SLOTS - 1) if n not in self._taken), SLOTS - 1)
        self._taken.add(slot)
        self._clear(slot)
        self._cells[END] = max(self._cells[END], (slot + 1) * WIDTH)
        return Share(self._cells, slot)

    def give_back(self, share: "Share") -> None:
        """Free the slot of a worker that is gone, however it died; called in the master."""
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
        """Tell how many connections this worker holds."""
        return int(self._cells[self._base + OPEN])

    def join(self) -> None:
        """Start to count among the workers that accept connections."""
        self._cells[self._base + LIVE] = 1

    def leave(self) -> None:
        """Stop to count; nobody leaves a connection to this worker any more."""
        self._cells[self._base + LIVE] = 0

    def opened(self) -> None:
        """Count a connection just accepted."""
        self._cells[self._base + OPEN] += 1

    def closed(self) -> None:
        """Count a connection that ended."""
        self._cells[self._base + OPEN] -= 1

    def woke(self) -> None:
        """Show the others that this worker looks at its listener."""
        cell = self._base + WAKES
        self._cells[cell] = (self._cells[cell] + 1) % WRAP

    def due(self, waiting: int) -> int:
        """Return how many of so many waiting connections to take, so that all hold as many.

        Who holds its part already, and waited in vain for those that hold fewer, takes a little
        more: the more it holds, the more rarely it looks at its listener.
        """
        held = [held for _, held in self._others()]
        missing = math.ceil((self.open + sum(held) + waiting) / (1 + len(held))) - self.open
        return min(missing if missing > 0 else self.a_little, MAX_AT_ONCE)

    @property
    def a_little(self) -> int:
        """How many more connections hardly matter beside those this worker holds."""
        return 1 + self.open // HEADWAY

    def rivals(self) -> list[tuple[tuple[int, int], bool]]:
        """Return slot and wake-ups of each other live worker, and whether it holds fewer."""
        mine, cells = self.open, self._cells
        return [((base, cells[base + WAKES]), held < mine) for base, held in self._others()]

    def _others(self) -> Iterator[tuple[int, int]]:
        """Yield slot and connections of each other live worker."""
        cells = self._cells
        for base in range(0, cells[END], WIDTH):
            if cells[base + LIVE] and base != self._base:
                yield base, cells[base + OPEN]
