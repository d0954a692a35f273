"""Writes docs/audit.md from the list of actions: `python -m console.audit.document`."""

from pathlib import Path

from console.audit.actions import RENAMED, AuditAction

DOCUMENT = Path(__file__).parents[2] / "docs/audit.md"

INTRODUCTION = """\
# Audit actions

Every event of the audit record names who did it (a person, a runner, or Slipway itself), when, one of these
actions, and its target. The record can only grow: a trigger refuses changes and deletions. Admins read,
filter and export it on the Audit page; the events of a job also stand on the job's page and in its export.

A filter takes a whole action (`job.cancelled`) or its first word (`job`). This page is written from
`console/audit/actions.py` by `python -m console.audit.document`.

| action | target | means |
| --- | --- | --- |
"""

EARLIER_NAMES = """
## Earlier names

Older releases recorded some actions under other names. An upgrade renames the old events, and filters still
take the earlier names.

| earlier | now |
| --- | --- |
"""


def document() -> str:
    """Return the document's text."""
    actions = "".join(
        f"| `{action}` | {', '.join(action.kinds)} | {action.description} |\n" for action in AuditAction
    )
    renamed = "".join(f"| `{earlier}` | `{action}` |\n" for earlier, action in RENAMED.items())
    return f"{INTRODUCTION}{actions}{EARLIER_NAMES}{renamed}"


if __name__ == "__main__":
    DOCUMENT.write_text(document())
