"""The alerts of examples/alerts.yml: promtool takes them, they fire when they should, and the page names each."""

from __future__ import annotations

import re
from pathlib import Path

from promtools import judged

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
RULES = (EXAMPLES / "alerts.yml").read_text()
PAGE = (ROOT / "docs" / "operate.md").read_text()


def test_prometheus_takes_the_rules() -> None:
    assert judged("check", "rules", EXAMPLES / "alerts.yml") == ""


def test_each_alert_fires_when_it_should_and_not_before() -> None:
    assert judged("test", "rules", EXAMPLES / "alerts_test.yml") == ""
    tested = re.findall(r"alertname: (\w+)", (EXAMPLES / "alerts_test.yml").read_text())
    assert set(tested) == set(re.findall(r"alert: (\w+)", RULES))


def test_the_page_of_operators_names_each_alert_and_each_metric() -> None:
    assert set(re.findall(r"alert: (\w+)", RULES)) == set(re.findall(r"^\| `(Elastic\w+)`", PAGE, re.MULTILINE))
    metrics = (ROOT / "adapters" / "report" / "metrics.py").read_text()
    families = set(re.findall(r'"(elastic_\w+)"', metrics))
    named = {re.sub(r"_total$", "", name) for name in re.findall(r"^\| `(elastic_\w+)", PAGE, re.MULTILINE)}
    assert families == named
