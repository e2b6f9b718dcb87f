"""A few scenarios of each kind from the official suite. `make conformance` runs all."""

import pytest

from tests.chromium import find_browser
from tests.conformance.suite import (
    SHORT,
    VERSIONS,
    Scenario,
    expected_failures,
    is_installed,
    list_scenarios,
    run_scenario,
)

pytestmark = pytest.mark.skipif(not is_installed(), reason="the conformance suite is not here: npm was missing")


@pytest.mark.parametrize("name", SHORT)
async def test_our_client_passes_a_suite_scenario(name):
    versions = [each.version for each in await list_scenarios() if each.name == name]
    passed, out = await run_scenario(Scenario(name, versions[-1]))
    assert passed, out


@pytest.mark.skipif(find_browser() is None, reason="no Chromium is here; `scripts/browser` installs it")
async def test_browser_user_passes_a_login_scenario_through_the_bridge():
    passed, out = await run_scenario(Scenario("auth/iss-supported", "2026-07-28"), "browser_driver", timeout_s=90)
    assert passed, out


@pytest.mark.basic
async def test_every_expected_failure_names_a_scenario_and_a_reason():
    scenarios = {str(each) for each in await list_scenarios()}
    assert set(expected_failures()) <= scenarios
    assert all(expected_failures().values())
    assert {name.rpartition(" ")[2] for name in scenarios} == set(VERSIONS)
