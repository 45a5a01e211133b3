"""The program: its commands, its global options, and what it does when something goes wrong.

Exit codes: 0 done, 1 a bundle failed `verify` or a promise an `audit`, 2 to 7 errors raised on
purpose (see errors.py), 70 an unexpected error, 130 interrupted.
"""

from __future__ import annotations

import atexit
import errno
import gc
import io
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from congenial._version import __version__
from congenial.cli import ledger
from congenial.cli.audit import audit
from congenial.cli.check import check, compare
from congenial.cli.command_options import add_to, examples
from congenial.cli.convert import convert
from congenial.cli.data import data
from congenial.cli.demo import demo
from congenial.cli.desk import desk
from congenial.cli.estimate import estimate
from congenial.cli.explain import explain
from congenial.cli.export import export
from congenial.cli.infer import infer
from congenial.cli.init import init, schema
from congenial.cli.output import complain
from congenial.cli.publish import publish
from congenial.cli.reassess import reassess
from congenial.cli.release import release, sign
from congenial.cli.reproduce import reproduce
from congenial.cli.review import approve, propose
from congenial.cli.utility import curve, utility
from congenial.cli.verify import verify
from congenial.errors import CongenialError, spent_words

UNEXPECTED = 70
INTERRUPTED = 130


class Program(TyperGroup):
    """Turns errors into one line and an exit code; `--debug` lets the traceback through."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - typer calls it
        """The help lists the commands by what they are for."""
        longest = max(map(len, self.commands))
        panels: dict[str, list[tuple[str, str]]] = {}
        for name, command in self.commands.items():
            panel = str(getattr(command, "rich_help_panel", ""))
            panels.setdefault(panel, []).append(
                (name, command.get_short_help_str(formatter.width - 6 - longest))
            )
        for panel, rows in panels.items():
            with formatter.section(panel):
                formatter.write_dl([(name.ljust(longest), words) for name, words in rows])

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            complain("interrupted.")
            _say_spent(error)
            raise typer.Exit(INTERRUPTED) from None
        except CongenialError as error:
            if ctx.params.get("debug"):
                raise
            complain(str(error))
            _say_spent(error)
            raise typer.Exit(error.exit_code) from None
        except Exception as error:
            if ctx.params.get("debug") or _belongs_to_the_parser(error):
                raise
            # Its text stays out: it may quote a record.
            kind = type(error).__name__
            complain(f"unexpected error ({kind}). Run it again with `congenial --debug`.", lead="")
            _say_spent(error)
            raise typer.Exit(UNEXPECTED) from None


def _say_spent(error: BaseException) -> None:
    for words in spent_words(error):
        complain(words, lead="")


def _belongs_to_the_parser(error: Exception) -> bool:
    """Whether typer itself raised it on purpose: a wrong option, an exit, a closed pipe."""
    if isinstance(error, OSError):
        return error.errno == errno.EPIPE
    return isinstance(error, typer.Exit | typer.Abort) or hasattr(error, "format_message")


app = typer.Typer(
    name="congenial",
    cls=Program,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["--help", "-h"]},
    epilog=examples(
        "congenial demo", "cd demo", "congenial check plan.toml", "congenial check --help"
    ),
)

add_to(app, "Plan", init, data, check, compare, schema)
add_to(app, "Publish", propose, approve, publish, release, sign)
add_to(app, "Read a release", verify, explain, estimate, infer, export)
add_to(app, "Study", demo, audit, utility, curve, convert, reproduce)
app.add_typer(ledger.app, name="ledger", rich_help_panel="Manage")
add_to(app, "Manage", reassess, desk)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"congenial {__version__}")
        raise typer.Exit


@app.callback()
def program(
    debug: Annotated[
        bool,
        typer.Option("--debug", help="Show tracebacks; they may quote confidential data."),
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Publish what you must, exactly. Protect everything else, provably.

    A plan file names the data, the exact figures and the protected tables. `check` the plan,
    `publish` the exact figures, `release` the protected tables; `verify` and `explain` the result.
    """


def main() -> None:
    """Entry point of the `congenial` command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a label the terminal cannot show is no error
            stream.reconfigure(errors="replace")
    atexit.register(gc.freeze)  # the process ends: no search for cycles in all that was loaded
    app(prog_name="congenial")
