"""The rows of the results: figures and their targets, as Markdown and as JSON."""

import json
import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.load import Run

NOTHING = "-"

COLUMNS = (
    "scenario",
    "database",
    "clients",
    "req/s median (min-max)",
    "p50 ms",
    "p99 ms",
    "server CPU ms/req",
    "PostgreSQL CPU ms/req",
    "figure",
    "target",
    "met",
    "failed/sent",
    "other CPU",
)


@dataclass(frozen=True)
class Target:
    """The bound for a figure: at least `at_least`, or at most `at_most`."""

    at_least: float | None = None
    at_most: float | None = None

    def is_met(self, value: float) -> bool:
        """Return whether a value meets the target; NaN never does."""
        low = self.at_least is None or value >= self.at_least
        high = self.at_most is None or value <= self.at_most
        return low and high and not math.isnan(value)

    def __str__(self) -> str:
        return f"≥ {self.at_least:g}" if self.at_least is not None else f"≤ {self.at_most:g}"


@dataclass(frozen=True)
class Figure:
    """A named value, with its target if it has one."""

    name: str
    value: float
    target: Target | None = None
    unit: str = ""

    @property
    def verdict(self) -> str:
        """Whether the target is met, as text."""
        return NOTHING if self.target is None else "yes" if self.target.is_met(self.value) else "no"

    def __str__(self) -> str:
        digits = 2 if abs(self.value) < 10 else 1
        return f"{self.name} {self.value:.{digits}f}{self.unit and ' ' + self.unit}"


@dataclass
class Row:
    """One line of the table: the runs of one measurement, and the figures derived from them."""

    scenario: str
    database: str
    clients: int | str = NOTHING
    runs: Sequence[Run] = ()
    figures: list[Figure] = field(default_factory=list)
    part_of: str = ""
    foreign_beside: float = 0.0

    @property
    def failed(self) -> int:
        """How many answers were wrong or missing, including warm-up and drain."""
        return sum(run.failed for run in self.runs)

    @property
    def foreign_cores(self) -> float:
        """The most cores that other programs used in a run; without runs, during the whole row."""
        return max((run.foreign_cores for run in self.runs), default=self.foreign_beside)

    def of(self, value: Callable[[Run], float]) -> float:
        """Return the median of a value over the runs."""
        return statistics.median(value(run) for run in self.runs)


@dataclass
class Report:
    """All results of one call of the program."""

    machine: str
    options: str
    noise_limit: float
    databases: Sequence[str]
    rows: list[Row] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def is_noisy(self, row: Row) -> bool:
        """Return whether other programs used too much CPU during a run."""
        return row.foreign_cores > self.noise_limit

    def markdown(self) -> str:
        """Return all rows as Markdown."""
        lines = [f"Machine: {self.machine}.", f"Options: `{self.options}`.", ""]
        lines += ["| " + " | ".join(COLUMNS) + " |", "|---" * len(COLUMNS) + "|"]
        lines += ["| " + " | ".join(self._cells(row)) + " |" for row in self.rows]
        lines += ["", *(f"- not measured: {error}" for error in self.errors), ""]
        missed = [row for row in self.rows if any(f.verdict == "no" for f in row.figures)]
        noisy = sum(self.is_noisy(row) for row in self.rows)
        sent = sum(run.sent for row in self.rows for run in row.runs)
        failed = sum(row.failed for row in self.rows)
        lines.append(f"Requests: {sent:,}, every answer checked, {failed:,} wrong or missing.")
        lines.append(f"Rows with a missed target: {len(missed)} of {len(self.rows)}.")
        if noisy:
            lines.append(
                f"Rows marked `noisy`: {noisy}; other programs used more than "
                f"{self.noise_limit:g} cores meanwhile, measure these again."
            )
        return "\n".join(lines) + "\n"

    def _cells(self, row: Row) -> list[str]:
        figures = sorted(row.figures, key=lambda figure: figure.target is None)
        noisy = " noisy" if self.is_noisy(row) else ""
        return [
            row.scenario,
            row.database,
            str(row.clients),
            *_measured(row),
            "; ".join(str(figure) for figure in figures) or NOTHING,
            "; ".join(str(figure.target) for figure in figures if figure.target) or NOTHING,
            _verdict(row),
            f"{row.failed:,}/{sum(run.sent for run in row.runs):,}" if row.runs else NOTHING,
            f"{row.foreign_cores:.2f}{noisy}",
        ]

    def save(self, path: Path) -> None:
        """Write everything, single runs included, as JSON."""
        path.write_text(json.dumps(self._document(), indent=1) + "\n")

    def _document(self) -> dict[str, Any]:
        return {
            "machine": self.machine,
            "options": self.options,
            "errors": self.errors,
            "rows": [
                {
                    "scenario": row.scenario,
                    "part_of": row.part_of,
                    "database": row.database,
                    "clients": row.clients,
                    "failed": row.failed,
                    "foreign_cores": row.foreign_cores,
                    "figures": [_figure(figure) for figure in row.figures],
                    "runs": [run.summary() for run in row.runs],
                }
                for row in self.rows
            ],
        }


def _measured(row: Row) -> list[str]:
    if not row.runs:
        return [NOTHING] * 5
    rates = sorted(run.rate for run in row.runs)
    return [
        f"{statistics.median(rates):.1f} ({rates[0]:.1f}-{rates[-1]:.1f})",
        _latency(row, 0.5),
        _latency(row, 0.99),
        _cpu(row, "server"),
        _cpu(row, "postgres"),
    ]


def _latency(row: Row, share: float) -> str:
    latency = row.of(lambda run: run.percentile(share))
    return NOTHING if math.isnan(latency) else f"{latency:.2f}"


def _verdict(row: Row) -> str:
    if row.failed:
        return "worthless: failures"
    return "; ".join(figure.verdict for figure in row.figures if figure.target) or NOTHING


def _cpu(row: Row, part: str) -> str:
    if any(part not in run.cpu for run in row.runs):
        return NOTHING
    return f"{row.of(lambda run: run.cpu_ms(part)):.3f}"


def _figure(figure: Figure) -> dict[str, Any]:
    target = str(figure.target) if figure.target else None
    value = None if math.isnan(figure.value) else figure.value
    return {
        "name": figure.name,
        "value": value,
        "unit": figure.unit,
        "target": target,
        "met": figure.verdict,
    }
