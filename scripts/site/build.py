"""Build the documentation site from docs/ and its index. A broken link is an error.

The pages are also read on GitHub, so they are not changed. The generator, zensical, reads one directory. This script
copies the pages into build/docs, with the linked files from outside docs/, and adapts links. The navigation is the
index, docs/README.md: each heading is a section, and each link below it a page. The last section has the generated
pages, which are only on the site.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import api_pages
import commands_page
import rules_page
import yaml

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
DOCS = ROOT / "docs"
INDEX = DOCS / "README.md"
SOURCE = ROOT / "build" / "docs"
SITE = ROOT / "build" / "site"

WORKER = "https://unpkg.com/iframe-worker/shim"
"""The generator's script for searching pages that are opened as files. Our copy needs no network."""

LINK = re.compile(r"\[([^\]]*)\]\(([^)\s#:]+)(#[^)\s]*)?\)")
"""A link to a file, with its text, target and anchor. Addresses contain a colon and do not match."""

GENERATED = {
    "commands.md": "Commands",
    "api.md": "Python API",
    **{name: title for name, (title, _) in api_pages.PAGES.items()},
    "check-rules.md": "Rules of the checker",
}
"""The generated pages and their titles."""

Navigation = list[dict[str, str | list[dict[str, str]]]]


def navigation() -> Navigation:
    """Return the index in the format of the generator."""
    sections: Navigation = [{"Home": INDEX.name}]
    _, *parts = re.split(r"^## ", INDEX.read_text(), flags=re.MULTILINE)
    for part in parts:
        title, _, body = part.partition("\n")
        pages = [(words.replace("`", ""), _place(DOCS / target)) for words, target, _ in LINK.findall(body)]
        sections.append({title: [{words: place} for words, place in pages]})
    sections.append({"Generated reference": [{title: name} for name, title in GENERATED.items()]})
    return sections


def write_source() -> None:
    """Write all pages, and the files that they link to, into the directory that the generator reads."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    waiting = sorted(file for file in DOCS.rglob("*") if file.is_file())
    seen = set(waiting)
    while waiting:
        file = waiting.pop()
        copy = SOURCE / _place(file)
        copy.parent.mkdir(parents=True, exist_ok=True)
        if file.suffix != ".md":
            shutil.copyfile(file, copy)
            continue
        text = file.read_text()
        copy.write_text(LINK.sub(lambda link, file=file: _relocate(link, file), text))
        linked = {(file.parent / target).resolve() for _, target, _ in LINK.findall(text)}
        waiting.extend(found for found in linked - seen if found.is_file())
        seen |= linked
    pages = {"commands.md": commands_page.generate(), "check-rules.md": rules_page.generate(), **api_pages.generate()}
    for name, text in pages.items():
        (SOURCE / name).write_text(text, encoding="utf-8")


def _place(file: Path) -> str:
    """Return the place of a file in the site: the pages of docs/ at the top, others at their path in the repository."""
    file = file.resolve()
    return str(file.relative_to(DOCS if file.is_relative_to(DOCS) else ROOT))


def _relocate(link: re.Match[str], page: Path) -> str:
    words, target, anchor = link.groups()
    file = (page.parent / target).resolve()
    if not file.is_file():
        return link[0]  # the generator reports it with the page
    depth = len(Path(_place(page)).parent.parts)
    return f"[{words}]({'../' * depth}{_place(file)}{anchor or ''})"


def use_own_worker() -> None:
    """Replace the only script that pages would fetch from another server."""
    shutil.copyfile(HERE / "worker.js", SITE / "worker.js")
    for page in SITE.rglob("*.html"):
        depth = len(page.relative_to(SITE).parent.parts)
        page.write_text(page.read_text().replace(WORKER, "../" * depth + "worker.js"))


def main() -> int:
    """Build the site with the generator that the command line names. Return the exit code."""
    parser = argparse.ArgumentParser(description="Build the documentation site into build/site.")
    parser.add_argument("--generator", default="zensical", help="the command zensical")
    options = parser.parse_args()
    try:
        write_source()
    except api_pages.UndocumentedError as error:
        print(f"{error} is public but has no docstring", file=sys.stderr)
        return 1
    configuration = SOURCE.parent / "mkdocs.yml"
    inherited = os.path.relpath(HERE / "mkdocs.yml", configuration.parent)
    settings = {"INHERIT": inherited, "docs_dir": SOURCE.name, "site_dir": SITE.name, "nav": navigation()}
    configuration.write_text(yaml.safe_dump(settings, sort_keys=False))
    shutil.rmtree(SITE, ignore_errors=True)
    command = [options.generator, "build", "--strict", "--clean", "--config-file", str(configuration)]
    built = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if built.returncode != 0:
        print(built.stdout.partition("Traceback")[0], file=sys.stderr)
        return built.returncode
    use_own_worker()
    return 0


if __name__ == "__main__":
    sys.exit(main())
