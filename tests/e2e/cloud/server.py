"""The HTTP side of the fake account: one call at a time goes through faults, rules, a handler and the log."""

import json
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from typing import Any

from moto.core.exceptions import ServiceException
from moto.core.request import Request
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.exceptions import HTTPException
from werkzeug.serving import BaseWSGIServer, make_server

from tests.e2e.cloud import wire
from tests.e2e.cloud.account import Account
from tests.e2e.cloud.actions import AFTER, HANDLERS, OURS, RULES, SERVICES
from tests.e2e.cloud.inventory import listed
from tests.e2e.cloud.site_events import of_call, site_of
from tests.e2e.cloud.subjects import asked_subject, is_read, made_subject
from tests.e2e.cloud.wire import Call, Refusal, Response
from tests.e2e.faults import fault_of
from tests.e2e.operations import Operation, append
from tests.e2e.site import REGION

SIDE_DOOR = "/topolab/"
"""Paths that no AWS service has: `inventory` (GET), `reset` (POST), `ready` (GET)."""
_POLL_EVERY_S = 0.2
_WITHOUT_REGION = {"iam"}
"""Services whose requests an SDK may sign for any region."""
StartResponse = Callable[[str, list[tuple[str, str]]], object]
Environ = dict[str, Any]


class Cloud:
    """A WSGI application: moto behind our rules. `folder` is the site's; its logs and faults lie there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._account = Account()
        self._moto = DomainDispatcherApplication(create_backend_app)
        self._one_at_a_time = threading.Lock()

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request; nothing that goes wrong in here ends a connection."""
        began = time.monotonic()
        wire.buffered(environ)
        path = environ.get("PATH_INFO", "")
        what, response = self._side_door(path) if path.startswith(SIDE_DOOR) else self._aws(environ)
        print(f"{what} {response.status} {1000 * (time.monotonic() - began):.0f} ms", flush=True)
        start_response(f"{response.status} {_phrase(response.status)}", list(response.headers.items()))
        return [response.body]

    def _side_door(self, path: str) -> tuple[str, Response]:
        door = path.removeprefix(SIDE_DOOR)
        with self._one_at_a_time:
            if door == "reset":
                self._account.reset()
            if door not in {"inventory", "reset", "ready"}:
                return path, _plain(404, {"error": f"no side door {path}; there are inventory, reset and ready"})
            return path, _plain(200, listed(self._account) if door == "inventory" else {})

    def _aws(self, environ: Environ) -> tuple[str, Response]:
        scope = wire.scope_of(environ)
        service = "sts" if scope is None else scope[0]
        if wire.model_of(service) is None or service not in SERVICES:
            return service, _unknown(service, f"{environ['REQUEST_METHOD']} {environ.get('PATH_INFO')}")
        try:
            _check_signature(scope)
            call = wire.parse(environ, service)
        except Refusal as refusal:
            return service, wire.refused(Request(environ), service, refusal, None)
        except KeyError as unknown:
            told = Refusal("InvalidAction", f"{service} has no action {unknown.args[0]!r}")
            return service, wire.refused(Request(environ), service, told, None)
        return f"{call.key} {asked_subject(call)}", self._patiently(call, environ)

    def _patiently(self, call: Call, environ: Environ) -> Response:
        """A long poll would hold up everybody else's calls: it asks for what is there now, until its time is over."""
        until = time.monotonic() + wire.taken_patience_s(call, environ)
        while True:
            response = self._called(call, environ)
            if time.monotonic() >= until or b'"Messages"' in response.body or not response.ok:
                return response
            environ["wsgi.input"].seek(0)
            time.sleep(_POLL_EVERY_S)

    def _called(self, call: Call, environ: Environ) -> Response:
        subject, dry = asked_subject(call), bool(call.params.get("DryRun"))
        fault = None if dry else fault_of(self._folder / "faults.json", "aws", f"{call.action} {subject}")
        began = time.monotonic()
        if fault is not None and fault.delay_s:
            time.sleep(fault.delay_s)
        delayed_s = time.monotonic() - began
        with self._one_at_a_time:
            site = site_of(self._folder)
            self._account.kubeconfig = None if site is None else site.kubeconfig
            events = [] if dry else of_call(call, site)
            error = None if fault is None else fault.error
            response = self._refused_by_fault(call, error) if error else self._done(call, environ)
            if not is_read(call.action) and not dry:
                self._log(call, subject, response, {"delayed_s": delayed_s} if fault and fault.delay_s else {})
                for event in events if response.ok else []:
                    append(self._folder / "operations.jsonl", event)
        return response

    def _refused_by_fault(self, call: Call, code: str) -> Response:
        refusal = Refusal(code, f"{call.action} met a fault that the test asked for")
        return wire.refused(call.request, call.service, refusal, call.operation)

    def _done(self, call: Call, environ: Environ) -> Response:
        account = self._account
        try:
            for rule in RULES.get(call.key, ()):
                rule(account, call)
            if call.params.get("DryRun"):
                raise Refusal("DryRunOperation", "Request would have succeeded, but DryRun flag is set.")
            handler = HANDLERS.get(call.key)
            answer = None if handler is None else handler(account, call)
            if answer is not None:
                return wire.answered(call, answer)
            if call.service in OURS:
                raise NotImplementedError("this service is ours alone")
            response = self._by_moto(call, environ)
            after = AFTER.get(call.key)
            if after is not None and response.ok:
                after(account, call, wire.understood(call, response))
        except NotImplementedError as error:
            refusal = Refusal("NotImplemented", f"{call.key} is known neither to moto nor to tests.e2e.cloud: {error}")
            return wire.refused(call.request, call.service, refusal, call.operation)
        except ServiceException as refusal:
            return wire.refused(call.request, call.service, refusal, call.operation)
        except HTTPException as error:  # moto's older errors: raised by its models, which rules of ours ask too
            code = getattr(error, "error_type", type(error).__name__)
            message = str(getattr(error, "message", error))
            return wire.refused(call.request, call.service, Refusal(code, message), call.operation)
        except Exception as error:
            traceback.print_exc(file=sys.stdout)
            told = Refusal("InternalFailure", f"tests.e2e.cloud failed at {call.key}: {error!r}")
            return wire.refused(call.request, call.service, told, call.operation)
        return response

    def _by_moto(self, call: Call, environ: Environ) -> Response:
        heard: list[tuple[str, list[tuple[str, str]]]] = []

        def start(status: str, headers: list[tuple[str, str]], _: object = None) -> None:
            heard.append((status, headers))

        body = b"".join(self._moto(environ, start))
        line, headers = heard[-1]
        code = int(line.split(" ")[0])
        if code == HTTPStatus.NOT_FOUND and not body and call.service != "s3":
            raise NotImplementedError("moto has no path for it")
        return Response(status=code, headers=dict(headers), body=body)

    def _log(self, call: Call, subject: str, response: Response, details: Mapping[str, Any]) -> None:
        outcome, made = "ok", None
        if not response.ok:
            outcome = str(wire.understood(call, response).get("Error", {}).get("Code") or response.status)
        elif not isinstance(made := _made(call, response), str):
            made = None
        if made is not None and subject:
            details = {"name": subject, **details}
        operation = Operation(who="aws", verb=call.action, subject=made or subject, outcome=outcome, details=details)
        append(self._folder / "operations.jsonl", operation)


def listen(port: int, folder: Path) -> BaseWSGIServer:
    """A server on this port of 127.0.0.1 (0: a free one); its `serve_forever` answers."""
    return make_server("127.0.0.1", port, Cloud(folder), threaded=True, request_handler=_QuietHandler)


class _QuietHandler(MotoRequestHandler):
    """The application prints one line a call of its own."""

    def log_request(self, *_: object) -> None:
        """Say nothing."""


def _check_signature(scope: tuple[str, str] | None) -> None:
    if scope is None:
        raise Refusal("MissingAuthenticationToken", "Request is missing Authentication Token")
    service, region = scope
    if region != REGION and service not in _WITHOUT_REGION:
        raise Refusal(
            "SignatureDoesNotMatch",
            f"Credential should be scoped to a valid region: this account has {REGION} alone, and the request for "
            f"{service} was signed for {region}",
        )


def _made(call: Call, response: Response) -> str | None:
    return made_subject(call, wire.understood(call, response))


def _unknown(service: str, what: str) -> Response:
    sentence = f"service {service!r} ({what}) is known neither to moto nor to tests.e2e.cloud: add it there"
    body = {"__type": "NotImplemented", "message": sentence, "Code": "NotImplemented"}
    response = _plain(400, body)
    return replace(response, headers={**response.headers, "x-amzn-errortype": "NotImplemented"})


def _plain(status: int, body: object) -> Response:
    text = json.dumps(body).encode()
    return Response(
        status=status, headers={"Content-Type": "application/json", "Content-Length": str(len(text))}, body=text
    )


def _phrase(status: int) -> str:
    return HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else "Unknown"
