"""The command: `python -m deploy.bed --help`."""

import argparse
import json
import re
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from deploy.bed import upgrade
from deploy.bed.bed import Bed, describe, running
from deploy.bed.faults import FAULTS, Fault
from deploy.bed.storm import Storm
from tests.support.servers import NotStarted

UNITS = {"s": 1, "m": 60, "h": 3600}


def main() -> None:
    """Start the bed; keep it running until Ctrl-C, or put it under load with faults."""
    parser = _parser()
    arguments = parser.parse_args()
    chosen = [fault for fault in FAULTS if any(word in fault.name for word in arguments.only)]
    if not chosen:
        parser.error(f"--only: no fault has one of these words: {' '.join(arguments.only)}")
    # SIGTERM unwinds the stack like Ctrl-C, so that every server is stopped.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    settings = {} if arguments.storm else {"LOG_LEVEL": "INFO"}
    try:
        if arguments.upgrade_from:
            _upgrade(arguments)
            return
        with running(**settings) as bed:
            if arguments.storm is None:
                _stay(bed)
            elif not _run_storm(bed, arguments, chosen):
                sys.exit(1)
    except NotStarted as error:
        sys.exit(f"not started: {error}")
    except KeyboardInterrupt:
        sys.stderr.write("stopped\n")


def _stay(bed: Bed) -> None:
    sys.stdout.write(json.dumps(describe(bed), indent=1) + "\n")
    sys.stdout.write(f"Open {bed.proxy.url}/api/v1/docs, or in a shell:\n")
    sys.stdout.write(f"  curl --cacert {bed.proxy.certificate} {bed.proxy.url}/health/ready\n")
    sys.stdout.write("Ctrl-C stops everything and deletes it.\n")
    sys.stdout.flush()
    signal.pause()


def _run_storm(bed: Bed, arguments: argparse.Namespace, chosen: Sequence[type[Fault]]) -> bool:
    storm = Storm(bed, recovery=arguments.recovery, faults=chosen)
    report = storm.run(arguments.storm, hold=arguments.hold, rest=arguments.rest)
    sys.stdout.write(report.text() + "\n")
    return not report.violations


def _upgrade(arguments: argparse.Namespace) -> None:
    with upgrade.running(
        arguments.upgrade_from, database=arguments.database, venvs=arguments.venvs
    ) as bed:
        report, text = upgrade.run(bed, rest=arguments.rest)
    sys.stdout.write(text + "\n")
    if report.violations:
        sys.exit(1)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m deploy.bed",
        description="nginx, two instances, PostgreSQL and Valkey on this machine, for trying out.",
    )
    add: Any = parser.add_argument
    add(
        "--storm",
        type=_seconds,
        metavar="TIME",
        help="mixed load with faults for so long (say 3m or 1h), then a report; 1 if it is bad",
    )
    add("--hold", type=_seconds, default=6.0, help="how long each fault lasts (default 6s)")
    add("--rest", type=_seconds, default=6.0, help="the calm after each (default 6s)")
    add(
        "--only",
        nargs="+",
        default=[""],
        metavar="WORD",
        help="only faults with one of these words: " + ", ".join(fault.name for fault in FAULTS),
    )
    add("--recovery", type=_seconds, default=5.0, help="until all must be well (default 5s)")
    add(
        "--upgrade-from",
        metavar="REVISION",
        help="upgrade that version of this repository under load, and go back; 1 if it is bad",
    )
    add("--database", choices=tuple(upgrade.STEPS), default="postgres", help="of the upgrade")
    add("--venvs", type=Path, help="where the old version's packages stay for the next time")
    return parser


def _seconds(text: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text)
    if match is None:
        raise argparse.ArgumentTypeError("must be a time such as 90s, 3m or 1h")
    return float(match[1]) * UNITS[match[2] or "s"]


if __name__ == "__main__":
    main()
