"""The engine's side of Pulumi's protocol, played by a test to the stand-in for pulumi-kubernetes."""

from collections.abc import Mapping, Sequence
from concurrent import futures
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import engine_pb2_grpc, provider_pb2, provider_pb2_grpc, status_pb2

from tests.e2e.children import Children
from tests.e2e.providers.serving import Servicer
from tests.e2e.providers.values import from_struct, opened, to_struct

_PARENTS = "topolab:infra:TrainJob"


@dataclass
class Entry:
    """One resource in the state."""

    type: str
    name: str
    identifier: str = ""
    inputs: dict[str, Any] = field(default_factory=dict)
    outputs: dict[str, Any] = field(default_factory=dict)

    @property
    def about(self) -> dict[str, Any]:
        """What each request says of its resource."""
        return {
            "urn": f"urn:pulumi:dev::topolab::{_PARENTS}${self.type}::{self.name}",
            "type": self.type,
            "name": self.name,
        }


class Told(engine_pb2_grpc.EngineServicer):
    """What the provider shows to the user."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    def Log(self, request: Any, context: Any) -> Any:  # noqa: N802, ARG002
        self.messages.append(request.message)
        return empty_pb2.Empty()


class Engine:
    """A configured provider, asked in the order in which the engine asks."""

    def __init__(self, channel: grpc.Channel, told: Told | None = None) -> None:
        self._stub = provider_pb2_grpc.ResourceProviderStub(channel)
        self.told = told or Told()

    def configure(self, **settings: Any) -> Self:
        """As the engine does with the provider's inputs."""
        self._stub.Configure(provider_pb2.ConfigureRequest(args=to_struct(settings)))
        return self

    def check_config(self, **settings: Any) -> dict[str, str]:
        """Failures, by property."""
        answer = self._stub.CheckConfig(provider_pb2.CheckRequest(news=to_struct(settings)))
        return {failure.property: failure.reason for failure in answer.failures}

    def diff_config(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> Any:
        """The answer as it is."""
        return self._stub.DiffConfig(provider_pb2.DiffRequest(old_inputs=to_struct(old), news=to_struct(new)))

    def check(self, entry: Entry, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Inputs with defaults; ValueError with the failures."""
        answer = self._stub.Check(
            provider_pb2.CheckRequest(
                **entry.about, olds=to_struct(entry.inputs), news=to_struct(inputs), randomSeed=b"seed"
            )
        )
        if answer.failures:
            raise ValueError("; ".join(f"{failure.property}: {failure.reason}" for failure in answer.failures))
        return from_struct(answer.inputs)

    def preview(self, entry: Entry, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """The outputs that a preview foresees."""
        checked = to_struct(self.check(entry, inputs))
        if not entry.identifier:
            request = provider_pb2.CreateRequest(**entry.about, properties=checked, preview=True)
            answer = self._stub.Create(request)
        else:
            answer = self._updated(entry, checked, preview=True, timeout_s=0.0)
        foreseen: dict[str, Any] = opened(from_struct(answer.properties))
        return foreseen

    def diff(self, entry: Entry, inputs: Mapping[str, Any]) -> Any:
        """The answer as it is."""
        return self._stub.Diff(
            provider_pb2.DiffRequest(
                **entry.about,
                id=entry.identifier,
                olds=to_struct(entry.outputs),
                old_inputs=to_struct(entry.inputs),
                news=to_struct(self.check(entry, inputs)),
            )
        )

    def create(self, type_: str, name: str, inputs: Mapping[str, Any], *, timeout_s: float = 0.0) -> Entry:
        """A new resource; what a failed one leaves behind is in the error's `kept`."""
        entry = Entry(type_, name)
        checked = self.check(entry, inputs)
        request = provider_pb2.CreateRequest(**entry.about, properties=to_struct(checked), timeout=timeout_s)
        try:
            answer = self._stub.Create(request)
        except grpc.RpcError as error:
            raise _half_made(error, entry, checked) from None
        entry.identifier, entry.inputs = answer.id, checked
        entry.outputs = from_struct(answer.properties)
        return entry

    def update(self, entry: Entry, inputs: Mapping[str, Any], *, timeout_s: float = 0.0) -> None:
        """In place."""
        checked = self.check(entry, inputs)
        entry.outputs = from_struct(
            self._updated(entry, to_struct(checked), preview=False, timeout_s=timeout_s).properties
        )
        entry.inputs = checked

    def refresh(self, entry: Entry) -> bool:
        """False: it is gone."""
        answer = self._stub.Read(
            provider_pb2.ReadRequest(
                **entry.about,
                id=entry.identifier,
                properties=to_struct(entry.outputs),
                inputs=to_struct(entry.inputs),
            )
        )
        if answer.id:
            entry.inputs, entry.outputs = from_struct(answer.inputs), from_struct(answer.properties)
        return bool(answer.id)

    def delete(self, entry: Entry, *, timeout_s: float = 0.0) -> None:
        """And wait."""
        self._stub.Delete(
            provider_pb2.DeleteRequest(
                **entry.about,
                id=entry.identifier,
                properties=to_struct(entry.outputs),
                old_inputs=to_struct(entry.inputs),
                timeout=timeout_s,
            )
        )

    def cancel(self) -> None:
        """Ctrl-C."""
        self._stub.Cancel(empty_pb2.Empty())

    def _updated(self, entry: Entry, checked: Any, *, preview: bool, timeout_s: float) -> Any:
        return self._stub.Update(
            provider_pb2.UpdateRequest(
                **entry.about,
                id=entry.identifier,
                olds=to_struct(entry.outputs),
                old_inputs=to_struct(entry.inputs),
                news=checked,
                preview=preview,
                timeout=timeout_s,
            )
        )


class HalfMadeError(Exception):
    """The engine keeps the resource and goes on with it at the next up."""

    def __init__(self, reason: str, kept: Entry) -> None:
        super().__init__(reason)
        self.kept = kept


def in_process(provider: Any) -> tuple[Engine, grpc.Server]:
    """A provider object behind gRPC; stop the server in the end."""
    server = grpc.server(futures.ThreadPoolExecutor(8))
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(Servicer(provider), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    return Engine(grpc.insecure_channel(f"127.0.0.1:{port}")), server


def start_provider(
    children: Children, name: str, command: Sequence[str | Path], environment: Mapping[str, str]
) -> tuple[Engine, grpc.Server]:
    """A provider's process, as the engine starts it; the server is the engine that it talks to."""
    told = Told()
    server = grpc.server(futures.ThreadPoolExecutor(4))
    engine_pb2_grpc.add_EngineServicer_to_server(told, server)
    address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    child = children.start(name, [*command, address], environment)
    children.await_ready(name, lambda: child.log.read_text().endswith("\n"), 30)
    port = child.log.read_text().splitlines()[-1]
    return Engine(grpc.insecure_channel(f"127.0.0.1:{port}"), told), server


def _half_made(error: Any, entry: Entry, inputs: dict[str, Any]) -> Exception:
    packed = dict(error.trailing_metadata() or ()).get("grpc-status-details-bin")
    if packed is None:
        refused: Exception = error
        return refused
    status = status_pb2.Status.FromString(packed)
    detail = provider_pb2.ErrorResourceInitFailed()
    assert status.details[0].Unpack(detail)
    entry.identifier, entry.inputs, entry.outputs = detail.id, inputs, from_struct(detail.properties)
    return HalfMadeError(error.details(), entry)
