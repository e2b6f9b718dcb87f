"""Accessibility checks of a page with axe-core."""

from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "peers" / "node_modules" / "axe-core" / "axe.min.js"

RUN = """async () => (await axe.run()).violations.flatMap((rule) =>
    rule.nodes.map((node) => `${rule.id}: ${node.failureSummary} at ${node.html.slice(0, 200)}`))"""


async def barriers(page):
    """Return the accessibility problems of a page in its current state."""
    if not SOURCE.exists():
        pytest.skip("axe-core is not here: `make test` installs it where Node is")
    if not await page.evaluate("'axe' in globalThis"):
        await page.evaluate(SOURCE.read_text())
    return await page.evaluate(RUN)
