"""What is written to Redis in the background goes on, whatever happened to one of it."""

import logging

from app.core.deferred_writes import DeferredWrites


def test_a_fault_is_logged_and_not_the_end(rt, monkeypatch, wait_for, caplog):
    caplog.set_level(logging.ERROR)
    writes = DeferredWrites(rt.fail_fast_breaker, rt.clock)
    stop = writes.start()
    try:
        with monkeypatch.context() as odd:
            odd.setattr(writes, "_send", {}.__getitem__)
            writes.put("gatehouse:test", "lost", 60)
            wait_for(lambda: "deferred writes were lost" in caplog.text)
        writes.put("gatehouse:test", "kept", 60)
        wait_for(lambda: rt.redis.get("gatehouse:test") == "kept")
    finally:
        stop()
