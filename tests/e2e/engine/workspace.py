"""A driver of `pulumi` commands: one checkout, one backend, one environment, all under one folder."""

import itertools
import json
import subprocess
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.e2e import operations
from tests.e2e.engine import processes
from tests.e2e.engine.installation import Installation
from tests.e2e.engine.project import copy_project
from tests.e2e.engine.running import Outcome, Running
from tests.e2e.operations import Operation
from tests.e2e.site import Site

PASSPHRASE = "correct horse battery staple"
_EVENTFUL = {"up", "preview", "refresh", "destroy"}
_SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"


class Workspace:
    """A user at their shell: a fresh copy of the program, a backend of files, `pulumi` and its plugins.

    The environment is written here, word for word; nothing is inherited from the shell that runs the tests.
    """

    def __init__(
        self,
        installation: Installation,
        folder: Path,
        *,
        site: Site | None = None,
        project: Path | None = None,
        passphrase: str = PASSPHRASE,
    ) -> None:
        self.folder = folder
        self.project = project or copy_project(folder / "project")
        self.logs = folder / "logs"
        self.mark = uuid.uuid4().hex
        self.outcomes: list[Outcome] = []
        """Of all commands so far."""
        self._numbers = itertools.count(1)
        self._installation, self._site, self._passphrase = installation, site, passphrase
        for path in (self.backend, self.logs, folder / "tmp", folder / "user"):
            path.mkdir(parents=True, exist_ok=True)

    @property
    def backend(self) -> Path:
        """Where the state lies: stacks, history, locks."""
        return self.folder / "state"

    @property
    def environment(self) -> dict[str, str]:
        """What the user's shell would hold."""
        site = {} if self._site is None else self._site.environment()
        return {
            "PATH": f"{self._installation.binaries}:{_SYSTEM_PATH}",
            "HOME": str(self.folder / "user"),
            "TMPDIR": str(self.folder / "tmp"),
            "LANG": "C.UTF-8",
            "PULUMI_HOME": str(self._installation.home),
            # Without `metadata=skip` each state file has an `.attrs` file beside it that isn't written at once: an
            # engine killed there leaves an empty one, and all commands fail with "failed to load checkpoint: EOF".
            "PULUMI_BACKEND_URL": f"{self.backend.as_uri()}?metadata=skip",
            "PULUMI_CONFIG_PASSPHRASE": self._passphrase,
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            # What lets --event-log be asked for.
            "PULUMI_DEBUG_COMMANDS": "true",
            processes.MARK: self.mark,
            **site,
        }

    def pulumi(self, *arguments: str, **options: Any) -> Outcome:
        """Run `pulumi ARGUMENTS` to its end, whatever that is; options as for `start`."""
        return self.start(*arguments, **options).finish()

    def start(self, *arguments: str, variables: Mapping[str, str] | None = None, typed: str | None = None) -> Running:
        """Start `pulumi ARGUMENTS`; without a terminal, so that it never waits for a person.

        `typed`: what goes into standard input.
        """
        stem = f"{next(self._numbers):03d}-{arguments[0]}"
        events, output = self.logs / f"{stem}.events.jsonl", self.logs / f"{stem}.txt"
        logged = ("--event-log", str(events)) if arguments[0] in _EVENTFUL else ()
        with output.open("xb") as stream:
            process = subprocess.Popen(
                [str(self._installation.pulumi), *arguments, *logged, "--non-interactive"],
                cwd=self.project,
                env={**self.environment, **(variables or {})},
                stdin=subprocess.DEVNULL if typed is None else subprocess.PIPE,
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        if process.stdin is not None:
            process.stdin.write((typed or "").encode())
            process.stdin.close()
        self._note(arguments)
        return Running(arguments, process, output, events, self.mark, self.outcomes.append)

    def init(self, stack: str, *, copied_from: str | None = None) -> None:
        """A new stack, its secrets encrypted by the passphrase; `copied_from`: the stack whose file is copied."""
        if copied_from is not None:
            (self.project / f"Pulumi.{stack}.yaml").write_bytes(
                (self.project / f"Pulumi.{copied_from}.yaml").read_bytes()
            )
        self.pulumi("stack", "init", stack).must_succeed()
        if self._site is not None:
            self.set(stack, "topolab:charts", str(self._site.charts))

    def set(self, stack: str, key: str, value: str) -> None:
        """`pulumi config set`; a path of keys (`topolab:run.attempt`) reaches into a mapping."""
        path = ("--path",) if "." in key else ()
        self.pulumi("config", "set", "--stack", stack, *path, key, value).must_succeed()

    def set_secret(self, stack: str, key: str, value: str) -> None:
        """`pulumi config set --secret KEY`, the value typed: only its cipher text goes into the stack file."""
        self.pulumi("config", "set", "--stack", stack, "--secret", key, typed=value).must_succeed()

    def up(self, stack: str, *more: str, variables: Mapping[str, str] | None = None) -> Outcome:
        """`pulumi up --stack STACK --yes`."""
        return self.start_up(stack, *more, variables=variables).finish()

    def start_up(self, stack: str, *more: str, variables: Mapping[str, str] | None = None) -> Running:
        """The same, left running."""
        return self.start("up", "--stack", stack, "--yes", *more, variables=variables)

    def preview(self, stack: str, *more: str) -> Outcome:
        """`pulumi preview --stack STACK`."""
        return self.pulumi("preview", "--stack", stack, *more)

    def refresh(self, stack: str, *more: str) -> Outcome:
        """`pulumi refresh --stack STACK --yes`."""
        return self.pulumi("refresh", "--stack", stack, "--yes", *more)

    def destroy(self, stack: str, *more: str) -> Outcome:
        """`pulumi destroy --stack STACK --yes`."""
        return self.start_destroy(stack, *more).finish()

    def start_destroy(self, stack: str, *more: str) -> Running:
        """The same, left running."""
        return self.start("destroy", "--stack", stack, "--yes", *more)

    def cancel(self, stack: str) -> Outcome:
        """`pulumi cancel STACK --yes`: takes away the lock of an engine that is gone."""
        return self.pulumi("cancel", stack, "--yes")

    def outputs(self, stack: str) -> dict[str, Any]:
        """`pulumi stack output --json`; secrets hidden."""
        found: dict[str, Any] = self.json("stack", "output", "--stack", stack, "--json")
        return found

    def export(self, stack: str) -> dict[str, Any]:
        """`pulumi stack export`: the state, secrets encrypted."""
        found: dict[str, Any] = self.json("stack", "export", "--stack", stack)
        return found

    def replace_state(self, stack: str, state: Mapping[str, Any]) -> None:
        """`pulumi stack import`: what `export` gave, mended by hand."""
        self.pulumi("stack", "import", "--stack", stack, typed=json.dumps(state)).must_succeed()

    def resources(self, stack: str) -> list[dict[str, Any]]:
        """The resources of the state; none of an empty stack."""
        found: list[dict[str, Any]] = self.export(stack)["deployment"].get("resources", [])
        return found

    def pending(self, stack: str) -> list[dict[str, Any]]:
        """Operations whose outcome a killed engine didn't learn."""
        found: list[dict[str, Any]] = self.export(stack)["deployment"].get("pending_operations", [])
        return found

    def reap(self) -> list[int]:
        """End what a killed engine left; the processes that were."""
        return processes.reap(self.mark)

    def json(self, *arguments: str) -> Any:
        """What a command prints as JSON: standard output alone, warnings go to the other stream."""
        command = [str(self._installation.pulumi), *arguments, "--non-interactive"]
        done = subprocess.run(
            command, cwd=self.project, env=self.environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"`pulumi {' '.join(arguments)}` ended with {done.returncode}:\n{done.stderr}"
        return json.loads(done.stdout)

    def _note(self, arguments: tuple[str, ...]) -> None:
        """A line of the operation log where a command begins; what follows a secret's key isn't written."""
        if self._site is not None and arguments[0] in _EVENTFUL | {"cancel"}:
            operations.append(
                self._site.operations, Operation(who="engine", verb=arguments[0], subject=" ".join(arguments[1:]))
            )
