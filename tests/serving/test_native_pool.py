"""Native threads under gevent's loop."""

import ctypes
import os
import platform
import struct
import subprocess
import sys
import threading

import pytest

from app.core import scheduling
from app.core.native_pool import NICENESS, NativePool
from app.core.scheduling import MAX_NICENESS, TIME_SLICE_NS
from tests.support.servers import ROOT

SCHED_GETATTR = {"x86_64": 315, "aarch64": 275}.get(platform.machine())

PROGRAM = """
from gevent import monkey
monkey.patch_all()
import sys
from app.core.native_pool import NativePool

class Full:
    def write(self, text):
        raise OSError(28, "No space left on device")
    flush = write

def fail():
    raise ValueError("expected")

output, sys.stderr = sys.stdout, Full()
pool = NativePool(1)
try:
    pool.run(fail)
except ValueError as error:
    output.write(f"told: {error}, then {pool.run(int, '7')}")
"""


def test_an_exception_reaches_its_caller_though_nothing_can_be_printed():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, timeout=20
    )
    assert done.stdout == "told: expected, then 7"


AT_ONCE = """
from gevent import monkey
monkey.patch_all()
import gevent, threading, time
from app.core.native_pool import NativePool

sleep = monkey.get_original("time", "sleep")  # what the loop cannot see
lock = monkey.get_original("threading", "Lock")()
running = most = turns = 0

def work():
    global running, most
    # Until another ran as well and the loop went on, however slow the machine, or neither does.
    began, end = turns, time.monotonic() + 10
    with lock:
        running += 1
        most = max(most, running)
    while (most < 2 or turns < began + 6) and time.monotonic() < end:
        sleep(0.01)
    with lock:
        running -= 1

def turn():
    global turns
    while True:
        turns += 1
        gevent.sleep(0.01)

pool = NativePool(2)
gevent.spawn(turn)
gevent.joinall([gevent.spawn(pool.run, work) for _ in range(4)])
print(most, turns > 5)
"""


def test_two_run_at_once_in_threads_of_their_own_and_the_loop_goes_on_meanwhile():
    done = subprocess.run(
        [sys.executable, "-c", AT_ONCE], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "2 True\n", done.stderr


def turn_of(thread):
    """Return how many nanoseconds long a thread's turns are, as the kernel tells since 6.12."""
    attributes = ctypes.create_string_buffer(48)
    call = [ctypes.c_long(n) for n in (SCHED_GETATTR, thread)]
    size, flags = ctypes.c_uint(len(attributes)), ctypes.c_uint(0)
    assert ctypes.CDLL(None).syscall(*call, attributes, size, flags) == 0
    return struct.unpack("=IIQiIQQQ", attributes.raw)[5]


def kernel():
    return tuple(int(n) for n in platform.release().split("-")[0].split(".")[:2])


def test_who_computes_is_nicer_than_the_loop():
    mine = os.getpriority(os.PRIO_PROCESS, 0)
    computing, waiting = NativePool(1), NativePool(1, niceness=0)
    its = computing.run(threading.get_native_id)
    assert os.getpriority(os.PRIO_PROCESS, its) == min(mine + NICENESS, MAX_NICENESS)
    its = waiting.run(threading.get_native_id)
    assert os.getpriority(os.PRIO_PROCESS, its) == mine


@pytest.mark.skipif(SCHED_GETATTR is None or kernel() < (6, 12), reason="turns are all alike here")
def test_who_computes_has_short_turns():
    pool = NativePool(1)  # whose thread ends with it
    assert turn_of(pool.run(threading.get_native_id)) == TIME_SLICE_NS
    assert turn_of(threading.get_native_id()) != TIME_SLICE_NS


def test_a_policy_that_somebody_chose_is_kept():
    """Like `chrt --batch`, which threads inherit."""
    pool = NativePool(1, niceness=0)
    its = pool.run(threading.get_native_id)
    os.sched_setscheduler(its, os.SCHED_BATCH, os.sched_param(0))
    scheduling.lower_priority(its, NICENESS)
    assert os.sched_getscheduler(its) == os.SCHED_BATCH


def test_a_refusal_is_left(monkeypatch):
    def refused(*_):
        raise PermissionError

    monkeypatch.setattr(os, "getpriority", refused)
    assert NativePool(1).run(int, "7") == 7
