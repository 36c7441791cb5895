"""The figures of a call: each beside the bar that docs/performance.md promises."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from bench.load import Run


@dataclass(frozen=True)
class Figure:
    """One value; without a bar it is only told."""

    name: str
    value: float
    unit: str = ""
    at_least: float | None = None
    at_most: float | None = None

    @property
    def bar(self) -> str:
        if self.at_least is not None:
            return f"≥ {self.at_least:g}{self.unit}"
        return "" if self.at_most is None else f"≤ {self.at_most:g}{self.unit}"

    @property
    def verdict(self) -> str:
        if not self.bar:
            return ""
        is_met = (self.at_least is None or self.value >= self.at_least) and (
            self.at_most is None or self.value <= self.at_most
        )
        return "yes" if is_met else "**no**"

    def __str__(self) -> str:
        digits = 0 if abs(self.value) >= 100 else 1 if abs(self.value) >= 10 else 2
        return f"{self.value:,.{digits}f}{self.unit}"


@dataclass(frozen=True)
class Row:
    """What was measured of one kind of work; the runs tell how quiet the machine was."""

    work: str
    database: str
    figures: Sequence[Figure]
    runs: Sequence[Run] = ()

    @property
    def foreign_cores(self) -> float:
        """How many cores other programs used, in the worst run."""
        return max((run.foreign_cores for run in self.runs), default=0.0)


@dataclass
class Report:
    """All rows of a call, and what could not be measured."""

    machine: str
    options: str
    noise: float
    rows: list[Row] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def markdown(self) -> str:
        lines = [f"{self.machine}; options: {self.options}", ""]
        lines += ["| Work | Database | Figure | Value | Bar | Met |", "|---|---|---|---|---|---|"]
        for row in self.rows:
            mark = "\\*" if row.foreign_cores > self.noise else ""
            lines += [
                f"| {row.work} | {row.database} | {figure.name} | {figure}{mark} "
                f"| {figure.bar} | {figure.verdict} |"
                for figure in row.figures
            ]
        lines += ["", f"\\* other programs used more than {self.noise:g} cores meanwhile", ""]
        lines += [f"- not measured: {problem}" for problem in self.problems]
        return "\n".join(lines) + "\n"


def rates(named: dict[str, list[Run]]) -> list[Figure]:
    """Return the requests a second, p99 and CPU of each server."""
    figures = []
    for name, runs in named.items():
        figures += [
            Figure(name, statistics.median(run.rate for run in runs), "/s"),
            Figure(f"{name}, p99", statistics.median(run.percentile(0.99) for run in runs), " ms"),
            Figure(f"{name}, CPU", statistics.median(run.cpu_ms for run in runs), " ms"),
        ]
    return figures


def ratio(over: Iterable[float], under: Iterable[float]) -> float:
    """Return the median of the ratios of values that were measured one after the other."""
    return statistics.median(a / b for a, b in zip(over, under, strict=True))
