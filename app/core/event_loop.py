"""Yields to other greenlets, under gevent.

A greenlet that loops on `gevent.sleep(0)` instead gets fifty turns for each turn taken here.
"""

import gevent


def yield_to_event_loop() -> None:
    """Wait for the event loop's next iteration, in which it polls for I/O.

    Greenlets whose input has arrived run before the iteration after that. Of callers of
    `gevent.sleep(0)` the loop runs fifty before it polls, so that a few which are always ready
    would keep everybody else waiting fifty times as long.
    """
    hub = gevent.get_hub()
    next_turn = hub.loop.timer(0)
    try:
        hub.wait(next_turn)
    finally:
        next_turn.close()
