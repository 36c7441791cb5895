"""Letting others run, under gevent.

Whoever loops on `gevent.sleep(0)` beside this gets fifty turns for each of these.
"""

import gevent


def take_turns() -> None:
    """Wait for the loop's next turn, in which it asks the system for input.

    Those for whom input has arrived run before the turn after that. Of callers of `gevent.sleep(0)`
    the loop runs fifty before it asks, so that a few which are always ready would keep everybody
    else waiting fifty times as long.
    """
    hub = gevent.get_hub()
    next_turn = hub.loop.timer(0)
    try:
        hub.wait(next_turn)
    finally:
        next_turn.close()
