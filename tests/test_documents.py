"""The paths that documents name exist in the tree."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
#: A path in backquotes, such as `console/jobs/queue.py` or `docs/decisions/`.
PATH = re.compile(r"`((?:bench|console|deploy|docs|runner|slipway|specs|static|templates|tests)/[\w./-]*)`")
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_path_that_a_document_names_exists(document: Path) -> None:
    text = document.read_text()
    paths = [ROOT / path for path in PATH.findall(text)] + [
        document.parent / path for path in LINK.findall(text)
    ]
    assert [str(path) for path in paths if not path.exists()] == []


def test_the_life_of_a_job_passes_every_package_of_the_path() -> None:
    text = (ROOT / "docs/life-of-a-job.md").read_text()
    for package in (
        "console/jobs",
        "console/plans",
        "console/state",
        "console/live",
        "console/janitor",
        "runner",
        "specs",
    ):
        assert f"`{package}/" in text


def test_the_life_of_a_job_names_every_hook() -> None:
    """A hook is a list, or a dictionary of lists, to which packages add; `on_end` adds to `end_hooks`."""
    source = (ROOT / "console/jobs/hooks.py").read_text()
    hooks = set(re.findall(r"^(\w+): (?:list|defaultdict)\[", source, re.MULTILINE))
    life = (ROOT / "docs/life-of-a-job.md").read_text()
    assert len(hooks) == 8
    assert {hook for hook in hooks if f"`{hook.replace('end_hooks', 'on_end')}`" not in life} == set()
