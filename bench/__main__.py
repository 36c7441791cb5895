"""The command: `python -m bench --help`."""

import argparse
import shlex
import signal
import sys
from contextlib import ExitStack
from pathlib import Path

from bench import procs
from bench.lab import Lab, Options, Scenario, say, show
from bench.report import Report
from bench.scenarios import SCENARIOS

DATABASES = ("sqlite", "postgres")
SCALE_USERS = 1_000_000


def main() -> None:
    """Measure what the command line asks for and print the table."""
    arguments = _parser().parse_args()
    if arguments.list:
        for scenario in SCENARIOS:
            sys.stdout.write(f"{scenario.name:18} {scenario.summary}\n")
        return
    # A polite kill unwinds like Ctrl-C, so every server is stopped.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    report = Report(procs.machine(), shlex.join(sys.argv[1:]) or "none", arguments.noise)
    try:
        _measure(arguments, report)
    except KeyboardInterrupt:
        report.errors.append("interrupted, the table is not complete")
    finally:
        sys.stdout.write(report.markdown())
        if arguments.json:
            report.save(arguments.json)
    if report.errors:
        sys.exit(1)


def _measure(arguments: argparse.Namespace, report: Report) -> None:
    options = Options(
        duration=arguments.duration,
        clients=arguments.clients,
        repeats=arguments.repeats,
        noise=arguments.noise,
        wait=arguments.wait,
        scale=arguments.scale or SCALE_USERS,
    )
    databases = DATABASES if arguments.database == "both" else (arguments.database,)
    for database in databases:
        chosen = [s for s in _chosen(arguments) if database in s.databases]
        with ExitStack() as stack:
            lab = Lab(options, stack)
            for scenario in chosen:
                _measure_one(lab, database, scenario, report)


def _chosen(arguments: argparse.Namespace) -> list[Scenario]:
    if arguments.only:
        return [s for s in SCENARIOS if s.name in arguments.only]
    return [s for s in SCENARIOS if not s.only_by_name or (s.name == "scale" and arguments.scale)]


def _measure_one(lab: Lab, database: str, scenario: Scenario, report: Report) -> None:
    """Measure one scenario; its failure is reported and does not stop the others."""
    try:
        for row in scenario.measure(lab, database, scenario):
            report.rows.append(row)
            show(row)
    except Exception as error:
        say(f"{scenario.name} on {database}: {error}")
        reason = str(error).strip().splitlines()[-1]
        report.errors.append(f"{scenario.name} on {database}: {reason}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description="Measure the service beside a bare Flask route."
    )
    names = ", ".join(scenario.name for scenario in SCENARIOS)
    add = parser.add_argument
    add("--list", action="store_true", help="list the scenarios and stop")
    add("--only", type=_scenario_names, metavar="NAMES", help=f"comma-separated, of: {names}")
    add("--database", choices=(*DATABASES, "both"), default="both")
    add("--clients", type=_numbers, default=(1, 16, 64), help="default: 1,16,64")
    add("--duration", type=float, default=5.0, help="seconds of one run (default 5)")
    add("--repeats", type=int, default=3, help="runs of each point (default 3)")
    add("--noise", type=float, default=0.15, help="mark runs with more foreign cores than this")
    add("--wait", type=float, default=10.0, help="longest wait for a quiet machine, in seconds")
    add(
        "--scale",
        type=int,
        nargs="?",
        const=SCALE_USERS,
        metavar="USERS",
        help="measure `scale` too, with that many users (default 1,000,000)",
    )
    add("--json", type=Path, metavar="FILE", help="write all figures and single runs")
    return parser


def _scenario_names(text: str) -> list[str]:
    names = text.split(",")
    if unknown := set(names) - {scenario.name for scenario in SCENARIOS}:
        raise argparse.ArgumentTypeError(f"unknown: {', '.join(sorted(unknown))}")
    return names


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


if __name__ == "__main__":
    main()
