"""The schema of a ledger, step by step: one alembic revision per version of the format.

A new ledger goes through all of them, an older one through those it lacks, so the tables are
defined here and nowhere else. The version is kept in the table `ledger`, where every version of the
software looks for it, and not in a table of alembic's own. Nothing is ever migrated on opening.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlalchemy as sa


def migrate(connection: sa.Connection, have: int, want: int) -> None:
    """Run the revisions after `have` (0: nothing is there) up to `want`, in the caller's
    transaction: all of them or, on both databases, none.
    """
    from alembic.operations import Operations
    from alembic.runtime.migration import MigrationContext
    from alembic.script import ScriptDirectory

    scripts = ScriptDirectory(str(Path(__file__).parent))
    below = str(have) if have else "base"
    steps = list(scripts.iterate_revisions(str(want), below))
    with Operations.context(MigrationContext.configure(connection)):
        for step in reversed(steps):
            step.module.upgrade()
