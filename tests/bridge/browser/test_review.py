"""The review of all files that a session changed, with diffs and revert."""

import re
from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.bridge.browser.axe import barriers
from tests.bridge.browser.pages import PHONE, say, shoot
from tests.bridge.browser.test_composer import TOO_WIDE


def diff(path, old, new):
    return {"type": "diff", "path": str(path), "oldText": old, "newText": new}


async def change_files(page, agent):
    """Let the agent change a file twice, create one, and fail to change a third. Return the first two."""
    work = Path(await page.evaluate("dragoman.config.cwd"))
    reader, made = work / "reader.py", work / "made.py"
    reader.write_text("one\nfour\n")
    made.write_text("new\n")
    await say(page, "Change them")
    turn = await agent.next_turn()
    turn.start_call("one", kind="edit", status="completed", content=[diff(reader, "one\ntwo\n", "one\nthree\n")])
    turn.start_call("two", kind="edit", status="completed", content=[diff(reader, "three", "four")])
    turn.start_call("three", kind="edit", status="completed", content=[diff(made, None, "new\n")])
    turn.start_call("four", kind="edit", status="failed", content=[diff(work / "never.py", "a", "b")])
    turn.end()
    await page.get_by_role("button", name="Changed files").click()
    return reader, made


def file(page, path):
    return page.locator(f"details[data-path='{path}']")


async def revert(page, path, action="Revert"):
    await file(page, path).get_by_role("button", name="Revert this file").click()
    await page.get_by_role("dialog").get_by_role("button", name=action, exact=True).click()


@pytest.mark.basic
async def test_changed_files_are_reverted_if_unmodified_since(page, agent):
    reader, made = await change_files(page, agent)
    await expect(page.locator(".review-path")).to_have_text(["reader.py", "made.py"])
    await file(page, reader).locator("summary").click()
    await expect(file(page, reader).locator(".diff-del")).to_contain_text("two")
    await expect(file(page, reader).locator(".diff-add")).to_contain_text("four")
    await shoot(page, "review")
    assert await barriers(page) == []
    reader.write_text("one\nmine\n")
    await revert(page, reader)
    await expect(page.get_by_role("dialog")).to_contain_text(
        "changed after the agent edited it, so nothing was reverted"
    )
    assert reader.read_text() == "one\nmine\n"
    await page.keyboard.press("Escape")
    reader.write_text("one\nfour\n")
    await revert(page, reader)
    await expect(file(page, reader).locator("summary")).to_contain_text("reverted")
    assert reader.read_text() == "one\ntwo\n"
    await file(page, made).locator("summary").click()
    await revert(page, made, "Delete it")
    await expect(file(page, made).locator("summary")).to_contain_text("reverted")
    assert not made.exists()
    reader.unlink()
    await page.keyboard.press("Alt+c")
    await expect(page.get_by_role("log", name="Conversation")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_changed_files_fit_a_phone(visit, agent, scheme):
    page = await visit(viewport=PHONE, has_touch=True, color_scheme=scheme)
    reader, made = await change_files(page, agent)
    await file(page, reader).locator("summary").click()
    await expect(file(page, reader).locator(".diff")).to_be_visible()
    assert not await page.evaluate(TOO_WIDE)
    assert await barriers(page) == []
    await shoot(page, f"review_phone_{scheme}")
    reader.unlink()
    made.unlink()


async def test_large_diff_is_compared_in_a_worker_and_folded(page, agent):
    old = [f"line {n}" for n in range(20_000)]
    new = [f"{line} changed" if n % 20 == 0 else line for n, line in enumerate(old)]
    change = diff(Path(await page.evaluate("dragoman.config.cwd")) / "long.py", "\n".join(old), "\n".join(new))
    await say(page, "Change it")
    turn = await agent.next_turn()
    turn.start_call("one", kind="edit", status="completed", content=[change])
    turn.end()
    shown = page.locator(".tool .diff")
    await expect(shown.locator(".diff-bar .diff-counts")).to_have_text("+1000\N{MINUS SIGN}1000")
    assert [worker.url.rpartition("/")[2] for worker in page.workers] == ["diff.js"]
    await expect(shown.locator(".diff-line")).to_have_count(0)
    await shown.get_by_role("button", name="Changes to long.py").click()
    await expect(shown.locator(".diff-fold")).not_to_have_count(0)
    before = await shown.locator(".diff-line").count()
    await shown.locator(".diff-fold summary").first.click()
    await expect(shown.locator(".diff-fold[open] .diff-add .diff-text")).to_have_text(re.compile("line .* changed"))
    assert await shown.locator(".diff-line").count() == before + 8
    assert await barriers(page) == []
    folds = await shown.locator(".diff-fold").count()
    await shown.get_by_role("button", name="800 more changes").click()
    await expect(shown.locator(".diff-fold")).to_have_count(folds + 200)
    await page.get_by_role("button", name="Changed files").click()
    await expect(page.locator(".review-file summary .diff-counts").first).to_have_text("+1000\N{MINUS SIGN}1000")
