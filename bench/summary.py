"""The summary of a report: figures with a target by area, and the comparison with the peers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.lab import Group, Scenario
from bench.report import NOTHING, Figure, Report, Row, Target
from bench.scenarios.logins import SATURATING_CLIENTS
from bench.scenarios.peers import CLIENTS, PEERS

DATABASES = {"sqlite": "SQLite", "postgres": "PostgreSQL"}
NOT_MEASURED = "not measured"
NOISE = "\\*"
WORTHLESS = "worthless"
# What is compared with the peers: scenario, clients, figure of the ratio, and title of the row.
COMPARED = (
    ("me", CLIENTS, "rate", "who-am-I, rate : bare route"),
    ("sessions", CLIENTS, "rate", "session list, rate : bare route"),
    ("refresh", CLIENTS, "rate", "refresh, rate : bare route"),
    ("login", SATURATING_CLIENTS, "of pure Argon2id", "login, rate : pure Argon2id"),
)


@dataclass(frozen=True)
class Value:
    """A figure of one row."""

    row: Row
    figure: Figure
    is_noisy: bool

    @property
    def is_met(self) -> bool:
        """Whether the target is met and every answer was correct."""
        return self.figure.verdict == "yes" and not self.row.failed

    def __str__(self) -> str:
        text = WORTHLESS if self.row.failed else f"{self.figure.value:.{self._digits}f}"
        text = text if self.is_met else f"**{text}**"
        return text + (NOISE if self.is_noisy else "")

    @property
    def _digits(self) -> int:
        return 2 if abs(self.figure.value) < 10 else 1


@dataclass(frozen=True)
class Line:
    """A target, and the values on each database, in the order of client numbers."""

    area: str
    name: str
    target: Target
    values: dict[str, list[Value]]

    @property
    def verdict(self) -> str:
        """Whether every expected value was measured and meets the target, as text."""
        found = [value for values in self.values.values() for value in values]
        if any(not value.is_met for value in found):
            return "**no**"
        return "yes" if all(self.values.values()) else NOT_MEASURED

    @property
    def is_noisy(self) -> bool:
        """Whether a value was measured while other programs used the CPU."""
        return any(value.is_noisy for values in self.values.values() for value in values)

    def cell(self, database: str) -> str:
        """Return the values on a database as text."""
        if database not in self.values:
            return NOTHING
        return " / ".join(map(str, self.values[database])) or NOT_MEASURED


def markdown(groups: Sequence[Group], chosen: Sequence[Scenario], report: Report) -> str:
    """Return the summary by area, the table of targets and the one of peers."""
    lines = [line for group in groups for line in _lines(group, chosen, report)]
    return "\n".join(
        [
            "## Summary",
            "",
            *_by_area(groups, lines),
            "",
            "## Figures with a target",
            "",
            f"Bold: missed. {NOISE} beside other work: measure again.",
            "",
            "| area | figure | target | SQLite | PostgreSQL | met |",
            "|---|---|---|---|---|---|",
            *(
                f"| {line.area} | {line.name} | {line.target} |"
                f" {line.cell('sqlite')} | {line.cell('postgres')} | {line.verdict} |"
                for line in lines
            ),
            "",
            *_peers(chosen, report),
            "## All rows",
            "",
            "",
        ]
    )


def _by_area(groups: Sequence[Group], lines: Sequence[Line]) -> Iterator[str]:
    yield "| area | figures | met | missed | not measured | noisy |"
    yield "|---|---|---|---|---|---|"
    for group in groups:
        own = [line for line in lines if line.area == group.title]
        if own:
            verdicts = [line.verdict for line in own]
            counts = [len(own), *(verdicts.count(v) for v in ("yes", "**no**", NOT_MEASURED))]
            counts.append(sum(line.is_noisy for line in own))
            yield f"| {group.title} | {' | '.join(map(str, counts))} |"


def _lines(group: Group, chosen: Sequence[Scenario], report: Report) -> Iterator[Line]:
    """Yield a group's targets; those that were not measured have no values."""
    for scenario in group.scenarios:
        databases = [d for d in report.databases if d in scenario.databases]
        if not scenario.targets or scenario not in chosen or not databases:
            continue
        rows = [row for row in report.rows if row.part_of == scenario.name]
        found = {(row.scenario, f.name): f.unit for row in rows for f in row.figures if f.target}
        missing = scenario.targets.keys() - {name for _, name in found}
        found |= {(scenario.name, n): "" for n in scenario.targets if n in missing}
        for (label, name), unit in found.items():
            values = {d: list(_values(rows, label, name, d, report)) for d in databases}
            text = f"{label}: {name}{unit and ', ' + unit}{_clients(values)}"
            yield Line(group.title, text, scenario.targets[name], values)


def _values(
    rows: Sequence[Row], label: str, name: str, database: str, report: Report
) -> Iterator[Value]:
    for row in rows:
        if (row.scenario, row.database) == (label, database):
            for figure in row.figures:
                if figure.name == name and figure.target:
                    yield Value(row, figure, report.is_noisy(row))


def _clients(values: Mapping[str, Sequence[Value]]) -> str:
    """Return the client numbers as text if there is more than one, else an empty text."""
    clients = list(dict.fromkeys(value.row.clients for some in values.values() for value in some))
    return f", {' / '.join(map(str, clients))} clients" if len(clients) > 1 else ""


def _peers(chosen: Sequence[Scenario], report: Report) -> Iterator[str]:
    peers = {s.name: PEERS[s.name] for s in chosen if s.name in PEERS}
    if not peers:
        return
    yield "## Peers"
    yield ""
    yield f"The same requests, {CLIENTS} clients ({SATURATING_CLIENTS} for logins): the ratio; in"
    yield "brackets correct answers per second, and CPU of all processes in ms per answer."
    yield ""
    yield f"| request | database | Gatehouse | {' | '.join(peers.values())} |"
    yield "|---" * (3 + len(peers)) + "|"
    for request, clients, figure, title in COMPARED:
        for database in report.databases:
            labels = [request, *(f"{request}, {peer}" for peer in peers.values())]
            cells = [_peer_cell(report, label, database, clients, figure) for label in labels]
            yield f"| {title} | {DATABASES[database]} | {' | '.join(cells)} |"
    yield ""


def _peer_cell(report: Report, label: str, database: str, clients: int, name: str) -> str:
    for row in report.rows:
        if (row.scenario, row.database, row.clients) == (label, database, clients):
            ratios = [figure.value for figure in row.figures if figure.name == name]
            if row.failed or not ratios:
                return WORTHLESS
            cpu = row.of(lambda run: sum(map(run.cpu_ms, run.cpu)))
            noise = NOISE if report.is_noisy(row) else ""
            rate = row.of(lambda run: run.rate)
            return f"{ratios[0]:.2f} ({rate:,.0f}/s, {cpu:.2f} ms){noise}"
    return NOTHING
