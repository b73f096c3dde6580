"""`topo`: the table of verbs, and how every error reaches the user.

A verb's module is imported when the verb is called: `topo --help` must not wait for plots and clients.
"""

import difflib
import importlib
import os
import sys
from collections.abc import Sequence

import click

VERBS: dict[str, str] = {
    "catalogue": "List topologies, machines and models.",
    "predict": "Say what arms will need, take and cost before anything is made.",
    "render": "Print the Kubernetes objects of a topology or stack file.",
    "preflight": "Check an account before anything is made in it.",
    "lab": "Run an experiment's arms on this machine and report.",
    "nccl": "Say what NCCL used, from any log.",
    "watch": "Watch a run from capacity to its end, or suspend it.",
    "why-pending": "Say why a stack's pods don't run, and what to do.",
    "collect": "Fetch run records from a stack's bucket or a URI.",
    "report": "Write the page that compares runs.",
    "verify": "Recompute every figure of run records from their raw lines.",
    "verify-destroyed": "Prove that an account holds nothing of a stack any more.",
}
"""Every verb and its line of help; its module is workloads.cli.<verb_>, its command there `command`."""


class Verbs(click.Group):
    """A group that knows its commands by name and loads one only to run it."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # the base class fixes it
        """In the order of the work, not of the alphabet."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The one place where a module is imported by name."""
        if cmd_name not in VERBS:
            return None
        command: click.Command = importlib.import_module(f"workloads.cli.{cmd_name.replace('-', '_')}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, with the nearest verb offered."""
        name = args[0]
        if name not in VERBS and not name.startswith("-"):
            near = difflib.get_close_matches(name, VERBS, n=1)
            offer = f"did you mean {near[0]}?" if near else "`topo --help` lists them"
            ctx.fail(f"there is no verb {name!r}; {offer}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The table above, without loading a module."""
        with formatter.section("Verbs"):
            formatter.write_dl(list(VERBS.items()))


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name=None, version="0.1.0", prog_name="topo")
def topo() -> None:
    """What does the interconnect do to the training time of a job on EKS, and what does it cost?

    A TOPOLOGY is a name such as g6e8xl-2x1-efa1 (`topo catalogue` lists them) or a stack file such as
    Pulumi.dev.yaml. Exit code 0 means that what was asked is true; 1 that it is not; 2 that it can't be done.

    Completion: eval "$(_TOPO_COMPLETE=bash_source ./topo)" (or zsh_source, fish_source).
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb and return its exit code; what a user got wrong is one sentence on stderr."""
    try:
        outcome = topo.main(args=arguments, prog_name="topo", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return _say("interrupted", 130)
    except BrokenPipeError:
        # The reader has gone (`topo ... | head`): nothing is left to say, nor to flush at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except ValueError as error:
        return _say(str(error), 2)
    except OSError as error:
        what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        return _say(f"{what}; mend that and call again", 2)
    return outcome if isinstance(outcome, int) else 0


def _say(sentence: str, code: int) -> int:
    print(f"topo: {sentence}", file=sys.stderr)
    return code
