"""Version 1 diffs become Git patches, and patches become diffs of their hunks."""

from hypothesis import given
from hypothesis import strategies as st

from dragoman.protocol.translate.diff import MAX_COMPARED_LINES, diff_to_v1, diff_to_v2, make_patch, read_patch

TEXTS = st.lists(st.sampled_from(["a", "b", "", "-x", "+y", "\\ z", "@@ -1 +1 @@", "c\r"]), max_size=12).map("\n".join)


def diff(old, new, path="/w/a.py"):
    return {"type": "diff", "path": path, "oldText": old, "newText": new}


def apply_patch(old, patch):
    """Apply a patch to a text. Each hunk is found by its lines and replaced there."""
    made, rest = "", old
    for hunk in read_patch(patch):
        before, found, rest = rest.partition(hunk.old_text or "") if hunk.old_text else ("", "", rest)
        assert found == (hunk.old_text or "")
        made += before + hunk.new_text
    return made + rest


@given(TEXTS, TEXTS)
def test_patch_contains_every_change(old, new):
    patch = make_patch("/a", old, new)
    assert (patch == "") == (old == new)
    hunks = list(read_patch(patch))
    if len(hunks) == 1 and (old_text := hunks[0].old_text) and old.find(old_text) == old.rfind(old_text):
        assert apply_patch(old, patch) == new


@given(TEXTS, TEXTS)
def test_version_1_diff_round_trips(old, new):
    assert diff_to_v1(diff_to_v2(diff(old, new))) == [diff(old, new)]


def test_a_patch_has_three_lines_of_context_and_absolute_paths():
    old = "".join(f"{number}\n" for number in range(20))
    patch = diff_to_v2(diff(old, old.replace("10\n", "ten\n")))["patch"]
    assert patch == {
        "format": "git_patch",
        "text": "diff --git /w/a.py /w/a.py\n--- /w/a.py\n+++ /w/a.py\n"
        "@@ -8,7 +8,7 @@\n 7\n 8\n 9\n-10\n+ten\n 11\n 12\n 13\n",
    }


def test_a_new_file_is_added():
    made = diff_to_v2({"type": "diff", "path": "/w/n", "newText": "a\nb"})
    assert made["changes"] == [{"operation": "add", "path": "/w/n", "fileType": "text"}]
    assert made["patch"]["text"] == (
        "diff --git /w/n /w/n\nnew file mode 100644\n--- /dev/null\n+++ /w/n\n"
        "@@ -0,0 +1,2 @@\n+a\n+b\n\\ No newline at end of file\n"
    )


def test_very_long_texts_are_replaced_completely():
    old = "".join(f"a{number}\n" for number in range(MAX_COMPARED_LINES))
    new = old.replace("a", "b")
    (hunk,) = read_patch(make_patch("/a", f"same\n{old}end\n", f"same\n{new}end\n"))
    assert (hunk.old_text, hunk.new_text) == (f"same\n{old}end\n", f"same\n{new}end\n")


def test_long_text_with_few_changes_has_small_hunks():
    old = [f"line {number}\n" if number % 3 else "\n" for number in range(20_000)]
    new = [f"{number} is new\n" if number % 20 == 0 else line for number, line in enumerate(old)]
    del new[10_001]
    patch = make_patch("/a", "".join(old), "".join(new))
    lines = patch.split("\n")[3:]
    assert sum(line.startswith("-") for line in lines) == 1_001
    assert sum(line.startswith("+") for line in lines) == 1_000
    assert apply_patch("".join(old), patch) == "".join(new)


@given(st.lists(st.integers(0, 4_000), min_size=1, max_size=60), st.randoms(use_true_random=False))
def test_patch_of_long_texts_applies(places, chance):
    old = [f"{number}\n" if number % 4 else "same\n" for number in range(4_001)]
    new = list(old)
    for place in places:
        new[place] = chance.choice(["same\n", "new\n", f"{place + 1}\n", ""])
    made, at = [], 0
    for hunk in make_patch("/a", "".join(old), "".join(new)).split("\n@@ -")[1:]:
        head, *lines = hunk.removesuffix("\n").split("\n")
        start = int(head.split(",")[0].split(" ")[0]) - 1
        made += old[at:start]
        removed = [line[1:] + "\n" for line in lines if line[0] in " -"]
        at = start + len(removed)
        assert removed == old[start:at]
        made += [line[1:] + "\n" for line in lines if line[0] in " +"]
    assert "".join(made + old[at:]) == "".join(new)


def test_each_hunk_becomes_a_diff_and_the_patch_round_trips():
    old = "".join(f"{number}\n" for number in range(40))
    whole = {
        "type": "diff",
        "changes": [{"operation": "modify", "path": "/a"}, {"operation": "move", "path": "/c", "oldPath": "/b"}],
        "patch": {
            "format": "git_patch",
            "text": make_patch("/a", old, old.replace("\n5\n", "\nv\n").replace("\n35\n", "\nw\n")),
        },
    }
    first, second, moved = diff_to_v1(whole)
    assert (first["path"], first["oldText"], first["newText"]) == (
        "/a",
        "2\n3\n4\n5\n6\n7\n8\n",
        "2\n3\n4\nv\n6\n7\n8\n",
    )
    assert second["newText"] == "32\n33\n34\nw\n36\n37\n38\n"
    assert moved["content"]["text"] == "/b was moved to /c"
    assert diff_to_v2(first) == whole


def test_a_deleted_file_and_an_unusual_path_are_read():
    path = '/w/a "b"\té'
    patch = make_patch(path, "a\n", "b\n")
    assert '"/w/a \\"b\\"\\té"' in patch
    (hunk,) = read_patch(patch)
    assert hunk.path == path
    (gone,) = read_patch("diff --git /a /a\ndeleted file mode 100644\n--- /a\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n")
    assert gone == ("/a", "x\n", "")


def test_git_quoting_of_non_ascii_bytes_is_read():
    (hunk,) = read_patch('--- "/\\303\\251"\n+++ "/\\303\\251"\n@@ -1 +1 @@\n-x\n+y\n')
    assert hunk.path == "/é"
