"""A provider of custom resources behind Pulumi's protocol: what each stand-in shares.

`StandIn` is what a provider writes, in plain values; `serve` puts it behind gRPC. Each call has a thread of
its own, so it may block. Pulumi's own `pulumi.provider.experimental` isn't used: it shares one event loop,
answers errors with Python stacks, and hides the old inputs, the bare type and InitFailed
(pulumi 3.272).
"""

import argparse
import logging
import os
import select
import signal
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from concurrent import futures
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import grpc
from google.protobuf import any_pb2, empty_pb2
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc, plugin_pb2, provider_pb2, provider_pb2_grpc, status_pb2

from tests.e2e.faults import fault_of
from tests.e2e.providers.values import Kind, Properties, from_struct, to_struct
from tests.e2e.site import Site

_LOG = logging.getLogger(__name__)
_CALLS_AT_ONCE = 128
_LARGEST_MESSAGE = 400 << 20
"""As the engine's own limit (pulumi, sdk/go/common/util/rpcutil)."""


class RefusedError(Exception):
    """The operation didn't happen; the message is the sentence that the user reads."""


class InitFailedError(Exception):
    """The object exists and goes into the state with what is known of it, but isn't ready; the next up goes on."""

    def __init__(self, identifier: str, outputs: Mapping[str, Any], reason: str) -> None:
        super().__init__(reason)
        self.identifier, self.outputs = identifier, outputs


@dataclass(frozen=True, kw_only=True)
class Resource:
    """What a call is about. `type` is the bare token, without the parents' types that the URN carries."""

    urn: str
    type: str
    name: str


@dataclass(frozen=True, kw_only=True)
class Checked:
    """Inputs as the engine keeps them, defaults filled in; or what is wrong, by property."""

    inputs: Mapping[str, Any] = field(default_factory=dict)
    failures: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Change:
    """What an update would touch: property paths. Those of `replaces` make it a replacement."""

    paths: Mapping[str, Kind]
    replaces: frozenset[str] = frozenset()
    delete_before_replace: bool = False


@dataclass(frozen=True, kw_only=True)
class Found:
    """A live object: `inputs` as they would have to be written to make it as it is."""

    identifier: str
    inputs: Mapping[str, Any]
    outputs: Mapping[str, Any]


class StandIn(ABC):
    """A provider. Values come without secrets: the engine marks again in the outputs what was secret in the inputs.

    An output that is secret though its input isn't, or that has no input, is returned as a `Secret`.
    Errors are RefusedError or InitFailedError; anything else is our defect, and its stack stands in the log.
    """

    NAME: ClassVar[str]
    version: str
    stopping: threading.Event
    """Set by Ctrl-C in the engine: a wait looks at it and gives up."""
    tell: Callable[[Resource, str], None]
    """Shows the user what a wait is for."""

    def __init__(self, version: str) -> None:
        self.version = version
        self.stopping = threading.Event()
        self.tell = _tell_nobody

    def check_config(self, inputs: Properties) -> Checked:
        """The provider's own arguments; those that are no string come as JSON."""
        return Checked(inputs=inputs)

    def diff_config(self, old: Properties, new: Properties) -> Change:
        """What another configuration means; a replaced provider replaces all that it made."""
        del old, new
        return Change(paths={})

    @abstractmethod
    def configure(self, config: Properties) -> None:
        """Called once, with all values known, before any other call of this process but the checks."""

    @abstractmethod
    def check(self, resource: Resource, old: Properties, new: Properties, random_seed: bytes) -> Checked:
        """The same seed for the same resource, so a name made of it is the same in preview and update."""

    @abstractmethod
    def diff(self, resource: Resource, old: Found, new: Properties) -> Change:
        """What it takes to get from `old` to `new`."""

    @abstractmethod
    def create(self, resource: Resource, inputs: Properties, *, timeout_s: float) -> tuple[str, Mapping[str, Any]]:
        """Makes it; identifier and outputs. `timeout_s` is 0 where the program states none."""

    @abstractmethod
    def previewed(self, resource: Resource, inputs: Properties, old: Found | None) -> Mapping[str, Any]:
        """The outputs that a create, or an update of `old`, will have, as far as they are known."""

    @abstractmethod
    def read(self, resource: Resource, identifier: str, inputs: Properties, outputs: Properties) -> Found | None:
        """The live object; None when it is gone. Inputs are empty at an import."""

    @abstractmethod
    def update(self, resource: Resource, old: Found, inputs: Properties, *, timeout_s: float) -> Mapping[str, Any]:
        """Changes it in place; the outputs."""

    @abstractmethod
    def delete(self, resource: Resource, old: Found, *, timeout_s: float) -> None:
        """Deletes it; what is gone already is fine."""

    @abstractmethod
    def invoke(self, token: str, arguments: Properties) -> Mapping[str, Any]:
        """Answers a question of the program."""


def serve(stand_in: StandIn, arguments: list[str]) -> None:
    """Serves until the engine says so or ends; prints the port, as the engine expects."""
    parser = argparse.ArgumentParser(prog=f"pulumi-resource-{stand_in.NAME}")
    parser.add_argument("engine", help="the engine's address; each stand-in is started by it")
    engine = parser.parse_known_args(arguments)[0].engine
    _log_to_file(stand_in.NAME)
    stand_in.tell = partial(_tell, engine_pb2_grpc.EngineStub(grpc.insecure_channel(engine)))
    options = [
        ("grpc.max_receive_message_length", _LARGEST_MESSAGE),
        ("grpc.max_send_message_length", _LARGEST_MESSAGE),
    ]
    server = grpc.server(futures.ThreadPoolExecutor(_CALLS_AT_ONCE), options=options)
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(Servicer(stand_in, Site.of_environment().faults), server)
    end_with_engine()
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    server.wait_for_termination()


def end_with_engine() -> None:
    """Ends this process at SIGINT, by which the engine stops its plugins, and when the engine was killed."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: os._exit(0))
    parent = os.pidfd_open(os.getppid())

    def watch() -> None:
        select.select([parent], [], [])
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="engine").start()


class Servicer(provider_pb2_grpc.ResourceProviderServicer):
    """Turns messages into plain values and back. Its methods are named by Pulumi's protocol."""

    def __init__(self, stand_in: StandIn, faults: Path | None = None) -> None:
        self._stand_in, self._faults = stand_in, faults

    def GetPluginInfo(self, request: Any, context: Any) -> Any:  # noqa: N802, ARG002
        return plugin_pb2.PluginInfo(version=self._stand_in.version)

    def Handshake(self, request: Any, context: Any) -> Any:  # noqa: N802, ARG002
        return provider_pb2.ProviderHandshakeResponse()

    def Cancel(self, request: Any, context: Any) -> Any:  # noqa: N802, ARG002
        self._stand_in.stopping.set()
        return empty_pb2.Empty()

    def CheckConfig(self, request: Any, context: Any) -> Any:  # noqa: N802
        return self._answer(request, context, lambda: self._check_config(request))

    def DiffConfig(self, request: Any, context: Any) -> Any:  # noqa: N802
        old = from_struct(request.old_inputs)
        change = partial(self._stand_in.diff_config, old, from_struct(request.news))
        return self._answer(request, context, lambda: _diff_response(change()))

    def Configure(self, request: Any, context: Any) -> Any:  # noqa: N802
        return self._answer(request, context, lambda: self._configure(request))

    def Check(self, request: Any, context: Any) -> Any:  # noqa: N802
        return self._answer(request, context, lambda: self._check(request))

    def Diff(self, request: Any, context: Any) -> Any:  # noqa: N802
        return self._answer(request, context, lambda: self._diff(request))

    def Create(self, request: Any, context: Any) -> Any:  # noqa: N802
        return self._answer(request, context, lambda: self._create(request))

    def Read(self, request: Any, context: Any) -> Any:  # noqa: N802
        return self._answer(request, context, lambda: self._read(request))

    def Update(self, request: Any, context: Any) -> Any:  # noqa: N802
        return self._answer(request, context, lambda: self._update(request))

    def Delete(self, request: Any, context: Any) -> Any:  # noqa: N802
        return self._answer(request, context, lambda: self._delete(request))

    def Invoke(self, request: Any, context: Any) -> Any:  # noqa: N802
        return self._answer(request, context, lambda: self._invoke(request))

    def _check_config(self, request: Any) -> Any:
        return _check_response(self._stand_in.check_config(from_struct(request.news)))

    def _configure(self, request: Any) -> Any:
        self._stand_in.configure({key: value for key, value in from_struct(request.args).items() if key != "version"})
        return provider_pb2.ConfigureResponse(supportsPreview=True)

    def _check(self, request: Any) -> Any:
        old, new = from_struct(request.olds), from_struct(request.news)
        return _check_response(self._stand_in.check(_resource(request), old, new, request.randomSeed))

    def _diff(self, request: Any) -> Any:
        new = from_struct(request.news)
        return _diff_response(self._stand_in.diff(_resource(request), _old(request), new))

    def _create(self, request: Any) -> Any:
        resource, inputs = _resource(request), from_struct(request.properties)
        if request.preview:
            outputs = self._stand_in.previewed(resource, inputs, None)
            return provider_pb2.CreateResponse(properties=to_struct(outputs))
        self._meet_fault("create", resource)
        identifier, outputs = self._stand_in.create(resource, inputs, timeout_s=request.timeout)
        return provider_pb2.CreateResponse(id=identifier, properties=to_struct(outputs))

    def _read(self, request: Any) -> Any:
        inputs, outputs = from_struct(request.inputs), from_struct(request.properties)
        found = self._stand_in.read(_resource(request), request.id, inputs, outputs)
        if found is None:
            return provider_pb2.ReadResponse()
        return provider_pb2.ReadResponse(
            id=found.identifier, inputs=to_struct(found.inputs), properties=to_struct(found.outputs)
        )

    def _update(self, request: Any) -> Any:
        resource, old, inputs = _resource(request), _old(request), from_struct(request.news)
        if request.preview:
            outputs = self._stand_in.previewed(resource, inputs, old)
        else:
            outputs = self._stand_in.update(resource, old, inputs, timeout_s=request.timeout)
        return provider_pb2.UpdateResponse(properties=to_struct(outputs))

    def _delete(self, request: Any) -> Any:
        old = Found(
            identifier=request.id,
            inputs=from_struct(request.old_inputs),
            outputs=from_struct(request.properties),
        )
        self._meet_fault("delete", _resource(request))
        self._stand_in.delete(_resource(request), old, timeout_s=request.timeout)
        return empty_pb2.Empty()

    def _invoke(self, request: Any) -> Any:
        answer = self._stand_in.invoke(request.tok, from_struct(request.args))
        return provider_pb2.InvokeResponse(**{"return": to_struct(answer)})

    def _meet_fault(self, verb: str, resource: Resource) -> None:
        """What a test asked of any resource, whatever its provider does for it: "create TYPE NAME"."""
        fault = (
            None
            if self._faults is None
            else fault_of(self._faults, "engine", f"{verb} {resource.type} {resource.name}")
        )
        if fault is not None and fault.delay_s:
            self._stand_in.stopping.wait(fault.delay_s)
        if fault is not None and fault.error:
            raise RefusedError(f"{verb} of {resource.name}: {fault.error}")

    def _answer(self, request: Any, context: Any, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except RefusedError as error:
            context.abort(grpc.StatusCode.UNKNOWN, str(error))
        except InitFailedError as error:
            _abort_half_made(context, error)
        except Exception as error:
            what = getattr(request, "urn", "") or getattr(request, "tok", "")
            _LOG.exception("%s of %s", type(request).__name__, what)
            sentence = f"the stand-in {self._stand_in.NAME} has a defect: {type(error).__name__}: {error}"
            context.abort(grpc.StatusCode.INTERNAL, f"{sentence}; its stack stands in the provider's log")
        raise AssertionError("abort raises")


def _resource(request: Any) -> Resource:
    return Resource(urn=request.urn, type=request.type, name=request.name)


def _old(request: Any) -> Found:
    return Found(identifier=request.id, inputs=from_struct(request.old_inputs), outputs=from_struct(request.olds))


def _check_response(checked: Checked) -> Any:
    failures = [provider_pb2.CheckFailure(property=name, reason=why) for name, why in checked.failures.items()]
    return provider_pb2.CheckResponse(inputs=to_struct(checked.inputs), failures=failures)


def _diff_response(change: Change) -> Any:
    kinds = provider_pb2.PropertyDiff.Kind
    detailed = {
        path: provider_pb2.PropertyDiff(
            kind=kinds.Value(kind.upper() + ("_REPLACE" if path in change.replaces else "")), inputDiff=True
        )
        for path, kind in change.paths.items()
    }
    response = provider_pb2.DiffResponse
    return response(
        changes=response.DIFF_SOME if change.paths else response.DIFF_NONE,
        diffs=_tops(change.paths),
        replaces=_tops(change.replaces),
        detailedDiff=detailed,
        hasDetailedDiff=True,
        deleteBeforeReplace=change.delete_before_replace,
    )


def _tops(paths: Iterable[str]) -> list[str]:
    return sorted({path.split(".")[0].split("[")[0] for path in paths})


class _Status:
    """What `abort_with_status` reads (grpc.Status, which can't be constructed)."""

    def __init__(self, details: str, packed: bytes) -> None:
        self.code, self.details = grpc.StatusCode.UNKNOWN, details
        self.trailing_metadata = (("grpc-status-details-bin", packed),)


def _abort_half_made(context: Any, error: InitFailedError) -> NoReturn:
    detail = any_pb2.Any()
    detail.Pack(
        provider_pb2.ErrorResourceInitFailed(
            id=error.identifier, properties=to_struct(error.outputs), reasons=[str(error)]
        )
    )
    status = status_pb2.Status(code=grpc.StatusCode.UNKNOWN.value[0], message=str(error), details=[detail])
    context.abort_with_status(_Status(str(error), status.SerializeToString()))
    raise AssertionError("abort raises")


def _tell_nobody(resource: Resource, message: str) -> None:
    del resource, message


def _tell(engine: Any, resource: Resource, message: str) -> None:
    request = engine_pb2.LogRequest(severity=engine_pb2.INFO, message=message, urn=resource.urn, ephemeral=True)
    try:
        engine.Log(request, timeout=5)
    except grpc.RpcError:
        _LOG.info("not told: %s", message)


def _log_to_file(name: str) -> None:
    folder = Site.of_environment().logs
    folder.mkdir(parents=True, exist_ok=True)
    logging.basicConfig(
        filename=folder / f"provider-{name}.log", level=logging.INFO, format="%(asctime)s %(process)d %(message)s"
    )
