"""The files for Grafana and Prometheus name nothing that the service does not tell."""

import json
import re

import pytest
import yaml

from app.core.errors import ErrorCode
from app.mail.models import MailStatus
from tests.support import servers

DASHBOARD = servers.ROOT / "deploy" / "grafana" / "gatehouse.json"
ALERTS = servers.ROOT / "deploy" / "prometheus" / "alerts.yml"
WIDTH = 24
# What Prometheus adds itself.
TARGET = {"job", "instance"}
OWN = {"up": set()}
AGGREGATIONS = {"max", "min", "sum", "topk"}
FUNCTIONS = AGGREGATIONS | {"delta", "histogram_quantile", "increase", "rate", "vector"}
OPERATORS = re.compile(r"\b(?:and|or|unless)\b")

GROUPING = re.compile(r"\b(?:by|without)\s*\(([^)]*)\)")
STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
SELECTOR = re.compile(r"\b([a-zA-Z_]\w*)\s*(?:\{([^}]*)\}|(\())?")
MATCHER = re.compile(r'(\w+)\s*(=~|!~|!=|=)\s*"((?:[^"\\]|\\.)*)"\s*(?:,|$)')
LEGEND = re.compile(r"\{\{\s*(\w+)\s*\}\}")


@pytest.fixture(scope="module")
def told(told):
    """What an expression may name, with its labels."""
    return told | OWN


@pytest.fixture(scope="module")
def values(idle_app):
    """What stands in the labels whose values are known beforehand."""
    return {
        "action": set(idle_app.view_functions),
        "reason": {code.value for code in ErrorCode} | {""},
        "route": {rule.rule for rule in idle_app.url_map.iter_rules()} | {"unmatched"},
        "status": {str(n) for n in range(200, 600)} | {"success", "failure", *MailStatus},
        "outcome": {"applied", "superseded", "failed", "sent"},
    }


def check(expression, told, values):
    """Insist that an expression names only what there is; return the labels of its result."""
    bare = STRING.sub('""', expression)
    assert bare.count("(") == bare.count(")"), expression
    assert bare.count("{") == bare.count("}"), expression
    grouped = {
        label.strip() for labels in GROUPING.findall(expression) for label in labels.split(",")
    }
    rest = re.sub(r"\[[^]]*\]", "", OPERATORS.sub("", GROUPING.sub("", expression)))
    available = set()
    for name, matchers, call in SELECTOR.findall(rest):
        if call:
            assert name in FUNCTIONS, f"{name} in {expression}"
            continue
        assert name in told, f"{name} in {expression}"
        labels = told[name] | TARGET
        available |= labels
        matched = MATCHER.findall(matchers)
        assert MATCHER.sub("", matchers).strip() == "", expression
        for label, operator, value in matched:
            assert label in labels, f"{name} has no label {label}: {expression}"
            if label in values:
                known = values[label]
                is_regex = operator in ("=~", "!~")
                fits = re.compile(value).fullmatch if is_regex else value.__eq__
                assert any(fits(one) for one in known), f"no {label} is {value}: {expression}"
    assert available, expression
    assert grouped <= available, f"{grouped - available} in {expression}"
    return grouped or available


def targets(panel):
    return panel.get("targets", [])


@pytest.fixture(scope="module")
def dashboard():
    return json.loads(DASHBOARD.read_text())


def test_every_panel_names_only_what_the_service_tells(dashboard, told, values):
    count = 0
    for panel in dashboard["panels"]:
        for target in targets(panel):
            labels = check(target["expr"], told, values)
            legend = set(LEGEND.findall(target["legendFormat"]))
            assert legend <= labels, f"{panel['title']}: {legend - labels}"
            count += 1
    assert count > 30


def test_the_dashboard_asks_for_its_variables_in_metrics_that_there_are(dashboard, told):
    names = {variable["name"] for variable in dashboard["templating"]["list"]}
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            metric, label = re.fullmatch(
                r"label_values\((\w+)(?:\{.*\})?, (\w+)\)", variable["definition"]
            ).groups()
            assert label in told[metric] | TARGET
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(dashboard["panels"])))
    assert used - {"__rate_interval"} <= names


def test_panels_stand_beside_each_other(dashboard):
    taken = {}
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        assert place["x"] >= 0, panel["title"]
        assert place["x"] + place["w"] <= WIDTH, panel["title"]
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                other = taken.setdefault((x, y), panel["title"])
                assert other == panel["title"], f"{panel['title']} lies on {other}"
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(ids)) == len(ids)
    titles = [panel["title"] for panel in dashboard["panels"]]
    assert len(set(titles)) == len(titles)


def test_the_dashboard_shows_every_metric_of_the_service(dashboard, told):
    shown = " ".join(target["expr"] for panel in dashboard["panels"] for target in targets(panel))
    ours = {re.sub("_(bucket|count|sum)$", "", name) for name in told}
    foreign = ("up", "process_", "python_")
    assert {name for name in ours if not name.startswith(foreign) and name not in shown} == set()


def test_every_alert_names_only_what_the_service_tells(told, values):
    rules = [
        rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]
    ]
    assert len({rule["alert"] for rule in rules}) == len(rules) > 5
    for rule in rules:
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}, rule["alert"]
        labels = check(rule["expr"], told, values)
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert re.fullmatch(r"\d+[smh]", rule.get("for", "0s"))
        for text in rule["annotations"].values():
            assert set(re.findall(r"\$labels\.(\w+)", text)) <= labels, rule["alert"]


def test_a_login_that_the_database_fails_is_no_guess():
    groups = yaml.safe_load(ALERTS.read_text())["groups"]
    [rule] = [r for g in groups for r in g["rules"] if r["alert"] == "GatehousePasswordsGuessed"]
    selectors = re.findall(r"auth_events_total\{([^}]*)\}", rule["expr"])
    matched = {label: value for label, _, value in MATCHER.findall(selectors[0])}
    reasons = re.compile(matched["reason"])
    codes = {code.value for code in ErrorCode}
    assert {c for c in codes if reasons.fullmatch(c)} == {"auth.credentials_failed", "rate_limited"}


def test_an_alert_compares_with_nothing_that_may_not_be_there():
    """A counter with labels has no series before it counts; comparing with none is silent."""
    for group in yaml.safe_load(ALERTS.read_text())["groups"]:
        for rule in group["rules"]:
            bound = re.split(r"\s(?:>|<|==)\s", STRING.sub('""', rule["expr"]))[-1]
            assert "{" not in bound or "or vector(0)" in bound, rule["alert"]


@pytest.mark.parametrize(
    "wrong",
    [
        "sum(rate(http_request_total[5m]))",
        'sum(rate(http_requests_total{path="/"}[5m]))',
        'rate(auth_events_total{action="login.sign_in"}[5m])',
        'rate(auth_events_total{reason="auth.no_such_code"}[5m])',
        "sum by (route) (db_queries_total)",
        "sum((db_queries_total)",
        "average(db_queries_total)",
    ],
)
def test_a_wrong_expression_is_noticed(told, values, wrong):
    with pytest.raises(AssertionError):
        check(wrong, told, values)
