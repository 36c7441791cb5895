"""Letting others run, under gevent."""

import gevent


def take_turns() -> None:
    """Let whoever else is ready run once, those included for whom input has arrived.

    Of callers of `gevent.sleep(0)` alone gevent's loop runs fifty before it asks the system for
    input, so that a few which are always ready keep everybody else waiting fifty times as long.
    """
    hub = gevent.get_hub()
    next_turn = hub.loop.timer(0)
    try:
        hub.wait(next_turn)
    finally:
        next_turn.close()
