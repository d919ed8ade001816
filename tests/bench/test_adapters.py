"""Every adapter says what it is meant to say, so that the bench compares like with like."""

from __future__ import annotations

import pytest

from .__main__ import ADAPTERS, breaches, run_worker, running_server, table


@pytest.fixture(scope="module")
def url():
    with running_server() as url:
        yield url


@pytest.mark.parametrize("name", ADAPTERS)
def test_an_adapter_runs_with_and_without_tools_threads_and_hooks(url, name):
    assert "smoke" in run_worker(url, name, ["smoke"])


def test_the_table_has_medians_and_their_spread():
    compared = {("pai_", "seq"): [0.5, 0.3, 0.4]}
    assert table(compared, ["pai_"], ["seq"]).splitlines() == [
        "| adapter | run, one at a time |",
        "| --- | --- |",
        "| `pai_` | 0.40 (0.30 to 0.50) |",
    ]


@pytest.mark.parametrize(("values", "broken"), [([0.1, 9.0, 0.1], 0), ([0.9, 0.1, 0.9], 1)])
def test_a_limit_binds_the_median(values, broken):
    assert len(list(breaches({("pai_", "seq"): values}))) == broken
