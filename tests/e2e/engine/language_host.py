"""Stand-in for `pulumi-language-python`: the engine's Python host, over the real executor of Pulumi's SDK.

The real host is a Go program of a module that can't be had; what shows a program's errors to the user is the
executor that it starts, and that one is the real one (`pulumi-language-python-exec`). It prints its port, serves the
LanguageRuntime contract, and ends with the engine: a killed engine tells nobody.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent import futures
from importlib.metadata import version
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import language_pb2, language_pb2_grpc, plugin_pb2

from tests.e2e.engine import packages
from tests.e2e.engine.requirements import lacking
from tests.e2e.engine.runtime import Runtime, runtime_of

MESSAGE_LIMIT = 400 << 20
"""The engine's own (sdk/go/common/util/rpcutil)."""
ERROR_SHOWN = 32
"""Exit code of the executor after an error that the user has seen already."""
_LOOK_EVERY_S = 0.2
_WORKERS = 8


class PythonHost(language_pb2_grpc.LanguageRuntimeServicer):
    """Runs each program in a child process of its own virtualenv."""

    def __init__(self, executor: Path, engine: str) -> None:
        self._executor = executor
        self._engine = engine
        self._programs: set[subprocess.Popen[bytes]] = set()

    def Handshake(self, request: Any, context: Any) -> Any:  # noqa: ARG002, N802 - the contract's own
        self._engine = request.engine_address or self._engine
        return language_pb2.LanguageHandshakeResponse()

    def GetPluginInfo(self, request: Any, context: Any) -> Any:  # noqa: ARG002, N802 - the contract's own
        return plugin_pb2.PluginInfo(version=version("pulumi"))

    def About(self, request: Any, context: Any) -> Any:  # noqa: N802 - the contract's own
        runtime = _runtime(request.info, context)
        number = _ask(runtime, "-c", "import platform; print(platform.python_version())")
        return language_pb2.AboutResponse(executable=str(runtime.python), version=number.strip())

    def GetRequiredPackages(self, request: Any, context: Any) -> Any:  # noqa: N802 - the contract's own
        runtime = _runtime(request.info, context)
        plugins = json.loads(_ask(runtime, packages.__file__))["plugins"]
        return language_pb2.GetRequiredPackagesResponse(
            packages=[
                plugin_pb2.PackageDependency(name=one["name"], version=f"v{one['version']}", kind="resource")
                for one in plugins
            ]
        )

    def GetProgramDependencies(self, request: Any, context: Any) -> Any:  # noqa: N802 - the contract's own
        runtime = _runtime(request.info, context)
        found = json.loads(_ask(runtime, packages.__file__))["distributions"]
        return language_pb2.GetProgramDependenciesResponse(
            dependencies=[language_pb2.DependencyInfo(name=name, version=version) for name, version in found.items()]
        )

    def InstallDependencies(self, request: Any, context: Any) -> Iterator[Any]:  # noqa: N802 - the contract's own
        """Nothing is fetched: says whether what requirements.txt pins is there."""
        runtime = _runtime(request.info, context)
        found = json.loads(_ask(runtime, packages.__file__))["distributions"]
        unmet = lacking(Path(request.directory) / "requirements.txt", found)
        if unmet:
            context.abort(
                grpc.StatusCode.FAILED_PRECONDITION,
                f"{runtime.virtualenv} lacks {', '.join(unmet)}, and this host fetches nothing; run `make set-up`",
            )
        yield language_pb2.InstallDependenciesResponse(stdout=b"All that requirements.txt asks for is installed.\n")

    def RuntimeOptionsPrompts(self, request: Any, context: Any) -> Any:  # noqa: ARG002, N802 - the contract's own
        return language_pb2.RuntimeOptionsResponse()

    def Run(self, request: Any, context: Any) -> Any:  # noqa: N802 - the contract's own
        runtime = _runtime(request.info, context)
        # No preexec_fn: it asks for a true fork, in whose child gRPC's own handlers crash now and then.
        program = subprocess.Popen(
            [str(runtime.python), "-u", str(self._executor), *self._arguments(request)],
            env={
                **runtime.environment(os.environ),
                "PULUMI_CONFIG": json.dumps(dict(request.config)),
                "PULUMI_CONFIG_SECRET_KEYS": json.dumps(list(request.configSecretKeys)),
            },
        )
        self._programs.add(program)
        code = program.wait()
        self._programs.discard(program)
        if code == ERROR_SHOWN:
            return language_pb2.RunResponse(bail=True)
        ended = "" if code == 0 else f"program exited with non-zero exit code: {code}"
        return language_pb2.RunResponse(error=ended)

    def Cancel(self, request: Any, context: Any) -> Any:  # noqa: ARG002, N802 - the contract's own
        self.end_programs()
        return empty_pb2.Empty()

    def end_programs(self) -> None:
        """Tell every running program to end."""
        for program in list(self._programs):
            program.terminate()

    def _arguments(self, request: Any) -> list[str]:
        options = {
            "monitor": request.monitor_address,
            "engine": self._engine,
            "project": request.project,
            "root_directory": request.info.root_directory,
            "stack": request.stack,
            "pwd": request.pwd,
            "dry_run": "true" if request.dryRun else "false",
            "parallel": str(request.parallel),
            "organization": request.organization,
        }
        named = [word for name, value in options.items() if value for word in (f"--{name}", value)]
        return [*named, request.info.entry_point, *request.args]


def _runtime(info: Any, context: Any) -> Runtime:
    try:
        runtime = runtime_of(info.root_directory, info.options)
        runtime.check()
    except ValueError as error:
        context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(error))
    return runtime


def _ask(runtime: Runtime, *arguments: str) -> str:
    command = [str(runtime.python), *arguments]
    return subprocess.run(
        command, env=runtime.environment(os.environ), capture_output=True, text=True, check=True
    ).stdout


def serve(executor: Path, engine: str) -> None:
    """Serve until the engine says so by a signal, or is gone."""
    host = PythonHost(executor, engine)
    over = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: over.set())
    parent = os.getppid()
    server = grpc.server(
        futures.ThreadPoolExecutor(_WORKERS), options=[("grpc.max_receive_message_length", MESSAGE_LIMIT)]
    )
    language_pb2_grpc.add_LanguageRuntimeServicer_to_server(host, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(port, flush=True)
    while not over.wait(_LOOK_EVERY_S) and os.getppid() == parent:
        pass
    host.end_programs()
    server.stop(grace=None)


def main() -> None:
    """The engine's own words come last: its address, after flags that it may add."""
    parser = argparse.ArgumentParser(prog="pulumi-language-python")
    parser.add_argument("--executor", type=Path, required=True)
    parser.add_argument("engine", nargs="?", default="")
    known, _ = parser.parse_known_args()
    serve(known.executor, known.engine)
    # A program that doesn't end holds a worker thread, and Python would wait for it.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
