"""axe-core, run on a page: what people with a screen reader, a keyboard or weak eyes would stumble over."""

from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "peers" / "node_modules" / "axe-core" / "axe.min.js"

RUN = """async () => (await axe.run()).violations.flatMap((rule) =>
    rule.nodes.map((node) => `${rule.id}: ${node.failureSummary} at ${node.html.slice(0, 200)}`))"""


async def barriers(page):
    """Name what stands in the way of people on a page as it is now."""
    if not SOURCE.exists():
        pytest.skip("axe-core is not here: `make test` installs it where Node is")
    if not await page.evaluate("'axe' in globalThis"):
        await page.evaluate(SOURCE.read_text())
    return await page.evaluate(RUN)
