"""Native threads under gevent's loop."""

import os
import subprocess
import sys
import threading

from app.core.thread_pool import NICENESS, ThreadPool
from tests.support.servers import ROOT

PROGRAM = """
from gevent import monkey
monkey.patch_all()
import sys
from app.core.thread_pool import ThreadPool

class Full:
    def write(self, text):
        raise OSError(28, "No space left on device")
    flush = write

def fail():
    raise ValueError("expected")

output, sys.stderr = sys.stdout, Full()
pool = ThreadPool(1)
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
from app.core.thread_pool import ThreadPool

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

pool = ThreadPool(2)
gevent.spawn(turn)
gevent.joinall([gevent.spawn(pool.run, work) for _ in range(4)])
print(most, turns > 5)
"""


def test_two_run_at_once_in_threads_of_their_own_and_the_loop_goes_on_meanwhile():
    done = subprocess.run(
        [sys.executable, "-c", AT_ONCE], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "2 True\n", done.stderr


BOTH_LOG = """
from gevent import monkey
monkey.patch_all()
import gevent, logging
from app.core import logs
from app.core.thread_pool import ThreadPool

logs.configure("text", "INFO")

def work():
    for _ in range(1000):
        logging.info("a line")

pool = ThreadPool(4)
greenlets = [gevent.spawn(pool.run, work) for _ in range(4)]
greenlets += [gevent.spawn(work) for _ in range(4)]
print(len(gevent.joinall(greenlets, timeout=60)))
"""


def test_native_threads_and_greenlets_log_without_waiting_for_each_other():
    done = subprocess.run(
        [sys.executable, "-c", BOTH_LOG], cwd=ROOT, capture_output=True, text=True, timeout=90
    )
    assert done.stdout == "8\n"
    assert done.stderr.count(" INFO root a line\n") == 8000


def test_who_computes_is_nicer_than_the_loop():
    mine = os.getpriority(os.PRIO_PROCESS, 0)
    computing, waiting = ThreadPool(1, is_nice=True), ThreadPool(1)
    its = computing.run(threading.get_native_id)
    assert os.getpriority(os.PRIO_PROCESS, its) == max(mine, NICENESS)
    its = waiting.run(threading.get_native_id)
    assert os.getpriority(os.PRIO_PROCESS, its) == mine


def test_a_refusal_is_left(monkeypatch):
    def refused(*_):
        raise PermissionError

    monkeypatch.setattr(os, "setpriority", refused)
    assert ThreadPool(1, is_nice=True).run(int, "7") == 7
