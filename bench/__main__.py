"""The command: `python -m bench --help`."""

import argparse
import shlex
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType

from bench import procs, summary
from bench.lab import Lab, Options, Scenario, log_progress, log_row
from bench.report import Report
from bench.scenarios import GROUPS, SCENARIOS

DATABASES = ("sqlite", "postgres")
SCALE_USERS = 1_000_000
# --quick divides what is counted instead of timed by this: logins, streams, users.
QUICK_DIVISOR = 10
QUICK_SCALE_USERS = 20_000
MAX_SCENARIO_SECONDS = 1800


class TookTooLong(Exception):
    """A scenario exceeded its time limit."""


def main() -> None:
    """Run what the command line asks for and print the tables."""
    arguments = _parser().parse_args()
    if arguments.list:
        for scenario in SCENARIOS:
            sys.stdout.write(f"{scenario.name:24} {scenario.summary}\n")
        return
    # SIGTERM unwinds the stack like Ctrl-C, so that every server is stopped.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    databases = DATABASES if arguments.database == "both" else (arguments.database,)
    options = shlex.join(sys.argv[1:]) or "none"
    report = Report(procs.machine(), options, arguments.noise, databases)
    chosen = _chosen(arguments)
    try:
        _measure(arguments, chosen, report)
    except KeyboardInterrupt:
        report.errors.append("interrupted, the tables are not complete")
    finally:
        _write_results(arguments, chosen, report)
        sys.stdout.write(_text(chosen, report))
    if report.errors:
        sys.exit(1)


def _measure(arguments: argparse.Namespace, chosen: Sequence[Scenario], report: Report) -> None:
    quick = arguments.quick
    wait = arguments.wait  # 0 is a valid choice: do not wait
    if wait is None:
        wait = 1.0 if quick else 10.0
    options = Options(
        duration=arguments.duration or (1.0 if quick else 5.0),
        clients=arguments.clients or ((16,) if quick else (1, 16, 64)),
        repeats=arguments.repeats or (1 if quick else 3),
        noise=arguments.noise,
        wait=wait,
        scale=arguments.scale or (QUICK_SCALE_USERS if quick else SCALE_USERS),
        divisor=QUICK_DIVISOR if quick else 1,
        nginx=arguments.nginx,
    )
    # Scenarios that fill the disk and the memory run last.
    for is_last in (False, True):
        for database in report.databases:
            turn = [s for s in chosen if s.runs_last == is_last and database in s.databases]
            with ExitStack() as stack:
                lab = Lab(options, stack)
                for number, scenario in enumerate(turn, 1):
                    log_progress(f"{database}, {number} of {len(turn)}: {scenario.name}")
                    _measure_one(lab, database, scenario, report)
                    _write_results(arguments, chosen, report)


def _chosen(arguments: argparse.Namespace) -> list[Scenario]:
    if arguments.only:
        return [s for s in SCENARIOS if s.name in arguments.only]
    if arguments.all:
        return list(SCENARIOS)
    return [s for s in SCENARIOS if not s.is_opt_in or (s.name == "scale" and arguments.scale)]


def _measure_one(lab: Lab, database: str, scenario: Scenario, report: Report) -> None:
    """Measure one scenario; any failure is reported and does not stop the others."""
    try:
        with _time_limit(MAX_SCENARIO_SECONDS):
            before = procs.sample()
            for row in scenario.measure(lab, database, scenario):
                row.part_of, after = scenario.name, procs.sample()
                row.foreign_beside = procs.foreign_load(before, after)
                before = after
                report.rows.append(row)
                log_row(row)
    except Exception as error:
        log_progress(f"{scenario.name} on {database}: {error!r}")
        lines = str(error).strip().splitlines()
        reason = lines[-1] if lines else type(error).__name__
        report.errors.append(f"{scenario.name} on {database}: {reason}")
        lab.forget_dead()


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise TookTooLong(f"it took longer than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _text(chosen: Sequence[Scenario], report: Report) -> str:
    return summary.markdown(GROUPS, chosen, report) + report.markdown()


def _write_results(
    arguments: argparse.Namespace, chosen: Sequence[Scenario], report: Report
) -> None:
    """Write the requested files with the results so far."""
    if arguments.json:
        report.save(arguments.json)
    if arguments.output:
        arguments.output.write_text(_text(chosen, report))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description="Measure the service beside a bare Flask route."
    )
    names = ", ".join(scenario.name for scenario in SCENARIOS)
    add = parser.add_argument
    add("--list", action="store_true", help="list the scenarios and stop")
    add("--only", type=_scenario_names, metavar="NAMES", help=f"comma-separated, of: {names}")
    add("--all", action="store_true", help="everything: scale, streams, assignments and peers too")
    add("--quick", action="store_true", help="short runs, a tenth of the sizes: does it all work?")
    add("--database", choices=(*DATABASES, "both"), default="both")
    add("--nginx", action="store_true", help="service and bare route behind nginx, as deployed")
    add("--clients", type=_numbers, help="default: 1,16,64 (quick: 16)")
    add("--duration", type=float, help="seconds of one run (default 5, quick: 1)")
    add("--repeats", type=int, help="runs of each point (default 3, quick: 1)")
    add("--noise", type=float, default=0.15, help="mark runs with more foreign cores than this")
    add(
        "--wait",
        type=float,
        help="longest wait for a quiet machine in seconds (default 10, quick: 1)",
    )
    add(
        "--scale",
        type=int,
        nargs="?",
        const=SCALE_USERS,
        metavar="USERS",
        help="measure `scale` too, with that many users (default 1,000,000)",
    )
    add("--output", type=Path, metavar="FILE", help="write the tables there too, as they grow")
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
