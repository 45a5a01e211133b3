"""The program: its commands, its global options, and what it does when something goes wrong.

Exit codes: 0 done, 1 a bundle failed `verify` or a promise an `audit`, 2 to 7 errors raised on
purpose (see errors.py), 70 an unexpected error, 130 interrupted.
"""

from __future__ import annotations

import ast
import atexit
import errno
import gc
import io
import sys
from collections.abc import Iterator, Mapping
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from congenial._version import __version__
from congenial.cli.command_options import examples
from congenial.cli.output import complain
from congenial.errors import CongenialError, spent_words

UNEXPECTED = 70
INTERRUPTED = 130


# Panels of the help and their commands; each stands in a file of its name, but for those in BESIDE.
COMMANDS = {
    "Plan": ("init", "data", "check", "compare", "schema"),
    "Publish": ("propose", "approve", "publish", "release", "sign"),
    "Read a release": ("verify", "explain", "estimate", "infer", "export", "site"),
    "Study": ("demo", "audit", "utility", "curve", "convert", "reproduce"),
    "Manage": ("reassess", "desk", "ledger"),
}
BESIDE = {
    "compare": "check",
    "schema": "init",
    "propose": "review",
    "approve": "review",
    "sign": "release",
    "curve": "utility",
}
FILES = {name: BESIDE.get(name, name) for names in COMMANDS.values() for name in names}


class Commands(Mapping[str, Any]):
    """The commands by name; the file of a command is loaded when its words have been understood.

    Help and wrong options wait for no library: both need the arguments of a command only.
    """

    def __iter__(self) -> Iterator[str]:
        return iter(FILES)

    def __len__(self) -> int:
        return len(FILES)

    def __getitem__(self, name: str) -> Any:
        outline = _outline(FILES[name])
        if "app" in outline:
            for command in outline["app"].registered_commands:
                command.callback = _loaded_later(FILES[name], command.callback)
            return typer.main.get_group(outline["app"])
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        call = outline[name]
        alone.command(epilog=call.epilog)(_loaded_later(FILES[name], call))
        return typer.main.get_command(alone)


def _outline(file: str) -> dict[str, Any]:
    """A file of commands run without its imports from this package, but for words of options.

    Its functions have their arguments and their help; what they call is not there.
    """
    body = [node for node in _source(file).body if not _is_own_import(node)]
    names: dict[str, Any] = {"__name__": f"outline of {file}"}
    code = compile(ast.Module(body, type_ignores=[]), file, "exec", dont_inherit=True)
    exec(code, names)  # noqa: S102 - a file of this package
    return names


def _is_own_import(node: ast.stmt) -> bool:
    if not isinstance(node, ast.ImportFrom):
        return False
    module = node.module or ""
    return module.startswith("congenial.") and module != "congenial.cli.command_options"


def _loaded_later(file: str, outlined: Any) -> Any:
    """The function of a command, with the arguments that its outline has."""

    @wraps(outlined)
    def run(**arguments: Any) -> None:
        getattr(import_module(f"congenial.cli.{file}"), outlined.__name__)(**arguments)

    return run


def _source(file: str) -> ast.Module:
    return ast.parse(Path(__file__).with_name(f"{file}.py").read_text(encoding="utf-8"))


def _first_sentence(name: str, width: int) -> str:
    """What the help of the program says of a command, from its source: nothing is loaded."""
    body = _source(FILES[name]).body
    (call,) = [node for node in body if isinstance(node, ast.FunctionDef) and node.name == name]
    return TyperCommand(name, help=ast.get_docstring(call)).get_short_help_str(width)


class Program(TyperGroup):
    """Turns errors into one line and an exit code; `--debug` lets the traceback through."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands: Any = Commands()

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - typer calls it
        """The help lists the commands by what they are for."""
        longest = max(map(len, FILES))
        width = formatter.width - 6 - longest
        for panel, names in COMMANDS.items():
            rows = [(name.ljust(longest), _first_sentence(name, width)) for name in names]
            with formatter.section(panel):
                formatter.write_dl(rows)

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
            complain(error.what)
            if error.remedy:
                complain(error.remedy, lead=" " * len("error: "))
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
