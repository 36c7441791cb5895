"""Delivers storage events to the open streams of one process, until their session ends.

One Redis subscription serves all streams. Before each frame and at each heartbeat, the stream's
session is checked to be still live, many streams per query. The members of a team are looked up for
each batch of events anew.
"""

import logging
import math
import socket
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from typing import TypeVar

from prometheus_client import Counter

from app.core.errors import DatabaseUnavailable
from app.core.logs import Outage
from app.core.runtime import Runtime
from app.core.texts import parsed_id
from app.events.messages import (
    EVERYBODY,
    MAX_MESSAGE_LENGTH,
    Message,
    MessageMalformed,
    parse,
    sync_required,
)
from app.events.streams import HEARTBEAT_SECONDS, OpenStreams, Stream
from app.sessions import service as sessions
from app.store.database import DATABASE_ERRORS, reason_of
from app.store.pubsub import Channel, Listener
from app.store.redis import EVENTS_CHANNEL, SESSIONS_CHANNEL
from app.teams import queries as teams_queries

T = TypeVar("T")

log = logging.getLogger(__name__)

TICK_SECONDS = 1.0
# Streams whose sessions are checked by one query.
CHECK_BATCH_SIZE = 500
# Streams sent to between two yields to waiting requests: half a millisecond's worth.
SEND_BATCH_SIZE = 20
# Interval between attempts while the database does not answer.
RETRY_SECONDS = 1.0
STOP_SECONDS = 2.0

MESSAGES = Counter("storage_events_total", "Storage events received.", ["outcome"])
SYNCS = Counter(
    "storage_event_syncs_total", "Times a stream was told to reload everything.", ["reason"]
)

# A stream and the frames to send it, joined in order; streams that get the same share the bytes.
Delivery = tuple[Stream, bytes]


class Hub:
    """Feeds the open streams of one process."""

    def __init__(self, rt: Runtime) -> None:
        self._rt = rt
        self.streams = OpenStreams(rt)
        # Streams ended since the last tick, and in the interval before; the latter are overdue.
        self._ending: list[Stream] = []
        self._overdue: list[Stream] = []
        self._is_resync_due = False
        self._checks = 0
        self._ask_at = -math.inf
        self._outage = Outage(
            log,
            "events are held back: the database does not answer",
            "events are delivered again: the database answers",
        )
        self._stopped = threading.Event()

    # --- life ----------------------------------------------------------------------------------

    def start(self) -> Callable[[], None]:
        """Start listening and accepting streams; return a function that stops the hub."""
        listener = Listener(
            self._rt.redis.client,
            self._rt.clock,
            [
                Channel(EVENTS_CHANNEL, on_messages=self.deliver, on_gap=self.sync_after_gap),
                # A gap affects both channels, and `sync_after_gap` checks every stream's session.
                Channel(SESSIONS_CHANNEL, self._sessions_ended, on_gap=lambda: None),
            ],
        )
        self.streams.open_up()
        listener.start()
        # Heartbeats go on while the database, which only the other one asks, hangs.
        tickers = [
            threading.Thread(target=self._every_second, args=[work], daemon=True)
            for work in (self.beat, self.check)
        ]
        for ticker in tickers:
            ticker.start()

        def stop() -> None:
            self.begin_shutdown()
            self._stopped.set()
            listener.close()
            for ticker in tickers:
                ticker.join(timeout=STOP_SECONDS)

        return stop

    def begin_shutdown(self) -> None:
        """End every stream and accept no more."""
        self.streams.close()
        self._end(self.streams.all())

    def open(
        self, user_id: int, opened_with: str | int, connection: socket.socket | None
    ) -> Stream | None:
        """Return a new stream for a caller who was just authenticated; None if none are accepted.

        `connection` is None if the server does not expose the client's connection.
        Raises: WorkerFull, TooManyStreams.
        """
        if not self.streams.is_open():
            return None
        stream = self.streams.add(user_id, opened_with, connection)
        if not self.streams.is_open():
            self._end([stream])
        return stream

    def _end(self, streams: Collection[Stream]) -> None:
        if streams:
            self._ending.extend(self.streams.end(streams))

    # --- events --------------------------------------------------------------------------------

    def deliver(self, texts: Sequence[str]) -> None:
        """Send published messages, in order, to the streams whose users may see them."""
        messages = list(self._readable(texts))
        with self._resync_on_failure():
            for part in _parts(self._plan(messages), CHECK_BATCH_SIZE):
                self._send(part)

    def sync_after_gap(self) -> None:
        """Make every page reload everything, since events were missed."""
        self._sync_everybody("gap")

    def _readable(self, texts: Iterable[str]) -> Iterator[Message]:
        for text in texts:
            if len(text) > MAX_MESSAGE_LENGTH:
                log.warning("an event of %s characters was skipped: it is too long", len(text))
                MESSAGES.labels("oversized").inc()
                continue
            try:
                message = parse(text)
            except MessageMalformed as error:
                log.warning("an event was skipped: %s", error)
                MESSAGES.labels("malformed").inc()
                continue
            MESSAGES.labels("taken").inc()
            yield message

    def _plan(self, messages: Sequence[Message]) -> Iterator[Delivery]:
        """Yield what to send to each stream; users with the same messages share the bytes.

        Lazily, so that waiting requests need not wait until thousands are planned.
        """
        for_all = tuple(n for n, message in enumerate(messages) if message.audience == EVERYBODY)
        for_some = self._recipients(messages)
        encoded = [message.event.frame() for message in messages]
        frames: dict[tuple[int, ...], bytes] = {}
        for user in self.streams.users() if for_all else for_some:
            indexes = for_all
            if user in for_some:
                indexes = tuple(sorted({*for_all, *for_some[user]}))
            if indexes not in frames:
                frames[indexes] = b"".join(encoded[n] for n in indexes)
            for stream in self.streams.of_user(user):
                yield stream, frames[indexes]

    def _recipients(self, messages: Sequence[Message]) -> dict[int, set[int]]:
        """Return each user's messages as indexes into `messages`, without those for everybody."""
        found: dict[int, set[int]] = {}
        of_team: dict[int, set[int]] = {}
        for number, message in enumerate(messages):
            audience = message.audience
            if audience.user_id is not None:
                found.setdefault(audience.user_id, set()).add(number)
            elif audience.team_id is not None:
                of_team.setdefault(audience.team_id, set()).add(number)
        for team_id, user_id in self._members(of_team):
            found.setdefault(user_id, set()).update(of_team[team_id])
        return found

    def _members(self, team_ids: Collection[int]) -> list[tuple[int, int]]:
        here = self.streams.users()
        if not team_ids or not here:
            return []
        database = self._rt.database
        return self._ask(lambda: teams_queries.list_members_among(database, team_ids, here))

    def _send(self, deliveries: Sequence[Delivery]) -> None:
        """Send to the streams whose session is live, and end the others."""
        self._end_unless_open([stream for stream, _ in deliveries])
        instead = self._sync_frame()
        for few in _parts(deliveries, SEND_BATCH_SIZE):
            for stream, frames in few:
                if not stream.has_ended and not stream.push(frames, instead):
                    SYNCS.labels("slow_reader").inc()
            self._rt.clock.sleep(0)

    def _sync_everybody(self, reason: str) -> None:
        self._is_resync_due = False
        frame = self._sync_frame()
        plan = [(stream, frame) for stream in self.streams.all()]
        with self._resync_on_failure():
            for part in _parts(plan, CHECK_BATCH_SIZE):
                self._send(part)
                SYNCS.labels(reason).inc(len(part))

    @contextmanager
    def _resync_on_failure(self) -> Iterator[None]:
        """Make a resync due if the block fails; swallow the error if the database is down.

        Unless permissions can be checked, nothing is delivered: pages reload later instead.
        """
        try:
            yield
        except DATABASE_ERRORS:
            self._is_resync_due = True
        except BaseException:
            self._is_resync_due = True
            raise

    def _sync_frame(self) -> bytes:
        return sync_required(self._rt.clock.now()).frame()

    # --- who may stay --------------------------------------------------------------------------

    def _sessions_ended(self, texts: Sequence[str]) -> None:
        """Check the streams of users who had a session ended, by any process."""
        users = {user for text in texts if (user := parsed_id(text)) is not None}
        self._check([stream for user in users for stream in self.streams.of_user(user)])

    def _check(self, streams: Sequence[Stream]) -> None:
        """End the streams whose session is no longer live; while the database is down, none."""
        try:
            for part in _parts(streams, CHECK_BATCH_SIZE):
                self._end_unless_open(part)
                self._rt.clock.sleep(0)
        except DATABASE_ERRORS:
            return  # checked again at the next heartbeat

    def _end_unless_open(self, streams: Collection[Stream]) -> None:
        ids = {stream.opened_with for stream in streams}
        open_ids = (
            self._ask(lambda: sessions.filter_open(self._rt, ids)) if ids else set[str | int]()
        )
        self._end([stream for stream in streams if stream.opened_with not in open_ids])

    def _ask(self, query: Callable[[], T]) -> T:
        """Return the result of a query; fail at once if one failed less than a second ago."""
        if self._rt.clock.monotonic() < self._ask_at:
            raise DatabaseUnavailable
        try:
            found = query()
        except DATABASE_ERRORS as error:
            self._ask_at = self._rt.clock.monotonic() + RETRY_SECONDS
            self._outage.record_failure(reason_of(error))
            raise
        self._outage.record_success()
        return found

    # --- time ----------------------------------------------------------------------------------

    def beat(self) -> None:
        """Send the heartbeats of one tick, due every second; this needs no database."""
        # Clients whose stream has ended but who do not read what is being sent.
        overdue, self._overdue, self._ending = self._overdue, self._ending, []
        for stream in overdue:
            if stream.connection is not None and not stream.is_closed:
                with suppress(OSError):
                    stream.connection.shutdown(socket.SHUT_RDWR)
        self._end(self.streams.left())
        self.streams.ticks += 1
        due = self._due(self.streams.ticks)
        for few in _parts(due, SEND_BATCH_SIZE):
            for stream in few:
                stream.beat()
            self._rt.clock.sleep(0)
        self.streams.permits.renew(due)

    def check(self) -> None:
        """Check the sessions of new streams, and of a part of the others; due every second."""
        if self._is_resync_due:
            self._sync_everybody("database")
        self._checks += 1
        self._check([*self.streams.take_fresh(), *self._due(self._checks)])

    def _due(self, tick: int) -> list[Stream]:
        slot = tick % HEARTBEAT_SECONDS
        return [stream for stream in self.streams.all() if stream.slot == slot]

    def _every_second(self, work: Callable[[], None]) -> None:
        now = self._rt.clock.monotonic
        due_at = now() + TICK_SECONDS
        while not self._stopped.wait(due_at - now()):
            try:
                work()
            except Exception:
                # Nothing restarts this thread, so no error may end it.
                log.exception("event streams could not be checked")
            # A tick's duration does not delay the next one; missed ticks are not made up for.
            due_at = max(due_at + TICK_SECONDS, now())


def _parts(things: Iterable[T], size: int) -> Iterator[list[T]]:
    iterator = iter(things)
    while part := list(islice(iterator, size)):
        yield part
