"""Draws a report's rows as plots in SVG, one for each question; light or dark as the reader's."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench.lab import OURS
from bench.report import Report, Row

WIDTH, SLOT, MARGIN = 700, 24, 12
# The words beside the longest bar take as much again.
LONGEST = 1.6
DATABASES = {"sqlite": "SQLite", "postgres": "PostgreSQL"}
REQUESTS = {"me": "Who am I", "sessions": "Session list", "refresh": "Refresh", "login": "Login"}
LOGINS = {"alone, p99": "alone", "during logins, p99": "while 64 clients log in"}
STREAMS = {"an event to all, p50": "half of {}", "an event to all, p99": "99 % of {}"}
COST = re.compile(r"cost ([\d,]+) : ([\d,]+)")
STYLE = """
text { font: 13px system-ui, -apple-system, "Segoe UI", Arial, sans-serif; fill: #1f2328 }
.axis text { font-weight: 600; text-anchor: end }
.value { font-weight: 600; text-anchor: start }
.name { font-weight: 400; fill: #59636e }
.background { fill: #fff }
.plot > .background { fill: none }
.ours { fill: #2f72d6 }
.other { fill: #b3bcc7 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  .name { fill: #9ea7b3 }
  .background { fill: #0d1117 }
  .ours { fill: #4a8ff0 }
  .other { fill: #59626e }
}
"""


class Bar(NamedTuple):
    """One bar, and what is written beside it; the plot is about those that are ours."""

    group: str
    value: float
    told: str
    name: str
    is_ours: bool


def write(report: Report, folder: Path) -> None:
    """Write each plot of which there are rows."""
    rows = report.rows
    folder.mkdir(parents=True, exist_ok=True)
    for database, name in DATABASES.items():
        title = f"Answers a second on {name}; each kind of request has a scale of its own"
        _write(folder / f"rates-{database}.svg", title, _rates(rows, database), has_scales=True)
    _write(folder / "logins.svg", "p99 of who am I", _latencies(rows, "me-during-logins", LOGINS))
    _write(folder / "streams.svg", "An event's way to all", _latencies(rows, " streams", STREAMS))
    _write(folder / "growth.svg", "Cost of a request by the number of accounts", [*_growth(rows)])


def _rates(rows: Sequence[Row], database: str) -> list[Bar]:
    return [
        Bar(REQUESTS[row.work], rate.value, f"{rate.value:,.0f}/s", rate.name, rate.name == OURS)
        for row in rows
        if row.database == database and row.work in REQUESTS
        for rate in row.figures
        if rate.unit == "/s"
    ]


def _latencies(rows: Sequence[Row], work: str, names: dict[str, str]) -> list[Bar]:
    """Return the figures of these names; the plot is about the last."""
    return [
        Bar(DATABASES[row.database], figure.value, str(figure), name.format(row.work), is_ours)
        for row in rows
        if row.work.endswith(work)
        for figure in row.figures
        if (name := names.get(figure.name))
        for is_ours in [figure.name == [*names][-1]]
    ]


def _growth(rows: Sequence[Row]) -> Iterator[Bar]:
    for row in rows:
        for figure in row.figures:
            if counts := COST.fullmatch(figure.name):
                work = row.work.removeprefix("growth: ")
                group = REQUESTS.get(work, work.capitalize())
                yield Bar(group, 1, "1.00 x", f"{counts[2]} accounts", is_ours=False)
                yield Bar(group, figure.value, f"{figure} x", f"{counts[1]} accounts", is_ours=True)


def _write(file: Path, title: str, bars: list[Bar], *, has_scales: bool = False) -> None:
    import pygal
    from pygal.style import Style

    if not bars:
        return
    slots = [*_slots(bars)]
    longest = {
        bar.group: max(b.value for b in bars if b.group == bar.group or not has_scales)
        for bar in bars
    }
    chart = pygal.HorizontalBar(
        width=WIDTH,
        height=2 * MARGIN + SLOT * len(slots),
        margin=MARGIN,
        range=(0, LONGEST),
        style=Style(label_font_size=13, value_font_size=13),
        js=[],
        print_values_position="top",
        **dict.fromkeys(("explicit_size", "print_values", "no_prefix"), True),
        **dict.fromkeys(("show_legend", "show_x_labels"), False),
    )
    chart.x_labels = [label for label, _ in slots]
    chart.add("", [bar and _value(bar, longest[bar.group]) for _, bar in slots])
    chart.add_xml_filter(lambda root: _plain(root, title))
    file.write_bytes(chart.render() + b"\n")


def _slots(bars: list[Bar]) -> Iterator[tuple[str, Bar | None]]:
    """Yield the rows from the bottom up; a group's first bar has its name, and space above."""
    for bar, above in zip(reversed(bars), [*reversed(bars[:-1]), None], strict=True):
        is_first = above is None or above.group != bar.group
        yield bar.group if is_first else "", bar
        if is_first and above:
            yield "", None


def _value(bar: Bar, longest: float) -> dict[str, Any]:
    kind = "ours" if bar.is_ours else "other"
    text = f"{bar.told}|{bar.name}"
    return {"value": bar.value / longest, "formatter": lambda _: text, "node": {"class": kind}}


def _plain(root: Any, title: str) -> Any:
    """Leave what there is to see: no script, no date, and a style of our own."""
    from lxml import etree

    etree.strip_elements(root, "script", "desc", "title", etree.Comment, with_tail=False)
    for node in root.xpath("//text[@class='value']"):
        node.text, _, name = node.text.partition("|")
        etree.SubElement(node, "tspan", {"class": "name", "dx": "6"}).text = name
    heading = etree.Element("title")
    heading.text = title
    root.insert(0, heading)
    root.find(".//style").text = STYLE
    del root.attrib["id"]
    return root
