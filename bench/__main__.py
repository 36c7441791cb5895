"""The command: `python -m bench --help`."""

import argparse
import shlex
import signal
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from types import FrameType

from bench import plots, procs
from bench.lab import Lab, Options, log
from bench.report import Report
from bench.scenarios import SCENARIOS, Scenario

DATABASES = ("sqlite", "postgres")
MAX_SCENARIO_SECONDS = 1800
# --quick divides what is counted instead of timed by this: logins, streams, accounts.
QUICK_DIVISOR = 20


class TookTooLong(Exception):
    """A scenario exceeded its time limit."""


def main() -> None:
    """Run what the command line asks for and print the figures beside their bars."""
    arguments = _parser().parse_args()
    if arguments.list:
        for scenario in SCENARIOS:
            print(f"{scenario.name:18} {scenario.summary}")
        return
    # SIGTERM unwinds the stack like Ctrl-C, so that every server is stopped.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGALRM, _give_up)
    report = Report(procs.machine(), shlex.join(sys.argv[1:]) or "none", arguments.noise)
    databases = DATABASES if arguments.database == "both" else (arguments.database,)
    try:
        for database in databases:
            _measure(arguments, database, report)
    except KeyboardInterrupt:
        report.problems.append("interrupted, the table is not complete")
    print(report.markdown())
    if arguments.output:
        arguments.output.write_text(report.markdown())
    if arguments.plots:
        plots.write(report, arguments.plots)
    if report.problems:
        sys.exit(1)


def _measure(arguments: argparse.Namespace, database: str, report: Report) -> None:
    quick = arguments.quick
    options = Options(
        duration=arguments.duration or (1.0 if quick else 5.0),
        repeats=arguments.repeats or (1 if quick else 3),
        noise=arguments.noise,
        wait=1.0 if quick else 10.0,
        with_peers=not arguments.without_peers,
        divisor=QUICK_DIVISOR if quick else 1,
    )
    with ExitStack() as stack:
        lab = Lab(options, database, stack)
        for scenario in _chosen(arguments):
            if database in scenario.databases:
                log(f"{database}: {scenario.name}")
                measure_one(lab, scenario, report)
        report.problems += [f"{peer}: {reason}" for peer, reason in lab.missing.items()]


def measure_one(lab: Lab, scenario: Scenario, report: Report) -> None:
    """Measure one scenario; any failure is reported and does not stop the others."""
    signal.alarm(MAX_SCENARIO_SECONDS)
    try:
        for row in scenario.measure(lab):
            report.rows.append(row)
            log("; ".join(f"{f.name} {f} {f.verdict}".rstrip() for f in row.figures))
    except Exception as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[-1]
        log(f"{scenario.name}: {error!r}")
        report.problems.append(f"{scenario.name} on {lab.database}: {reason}")
    finally:
        signal.alarm(0)


def _give_up(_signal: int, _frame: FrameType | None) -> None:
    raise TookTooLong(f"it took longer than {MAX_SCENARIO_SECONDS} s")


def _chosen(arguments: argparse.Namespace) -> Sequence[Scenario]:
    if arguments.only:
        return [s for s in SCENARIOS if s.name in arguments.only]
    return [s for s in SCENARIOS if arguments.all or not s.is_large]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description="Measure the service beside its peers."
    )
    names = ", ".join(scenario.name for scenario in SCENARIOS)
    add = parser.add_argument
    add("--list", action="store_true", help="list the scenarios and stop")
    add("--only", type=_scenario_names, metavar="NAMES", help=f"comma-separated, of: {names}")
    add("--all", action="store_true", help="the large ones, too, from streams to year")
    add("--quick", action="store_true", help="short runs and small sizes: does it all work?")
    add("--database", choices=(*DATABASES, "both"), default="both")
    add("--without-peers", action="store_true", help="measure this service alone")
    add("--duration", type=float, help="seconds of one run (default 5, quick: 1)")
    add("--repeats", type=int, help="runs of each kind of work (default 3, quick: 1)")
    add("--noise", type=float, default=0.15, help="mark rows with more foreign cores than this")
    add("--output", type=Path, metavar="FILE", help="write the table there, too")
    add("--plots", type=_plots_folder, metavar="FOLDER", help="draw plots of the figures there")
    return parser


def _plots_folder(text: str) -> Path:
    if not find_spec("pygal"):
        raise argparse.ArgumentTypeError("plots need pygal, of requirements-dev.txt")
    return Path(text)


def _scenario_names(text: str) -> list[str]:
    names = text.split(",")
    if unknown := set(names) - {scenario.name for scenario in SCENARIOS}:
        raise argparse.ArgumentTypeError(f"unknown: {', '.join(sorted(unknown))}")
    return names


if __name__ == "__main__":
    main()
