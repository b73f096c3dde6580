"""AWS's wire protocols: a request to a call with parameters, an answer or a refusal to bytes.

The protocols come from botocore's service models through moto's parser and serializer, so that an action of
ours and one of moto's look alike to any SDK.
"""

import io
import json
import re
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import UnknownServiceError
from botocore.model import OperationNotFoundError
from botocore.parsers import create_parser
from moto.core.exceptions import ServiceException
from moto.core.model import OperationModel, ServiceModel
from moto.core.parse import PROTOCOL_PARSERS
from moto.core.request import Request, determine_request_protocol
from moto.core.routing import get_service_router
from moto.core.serialize import get_serializer_class
from moto.core.utils import get_service_model
from werkzeug.exceptions import NotFound

Params = dict[str, Any]
Answer = Mapping[str, Any]

_SCOPE = re.compile(r"Credential=[^/]+/\d+/(?P<region>[^/]+)/(?P<service>[^/]+)/aws4_request")
_BY_SIGNING_NAME = {"tagging": "resourcegroupstaggingapi", "servicequotas": "service-quotas"}
"""botocore's name of a service where requests are signed under another one."""
SERVER_FAULTS = {"InternalError": 500, "InternalFailure": 500, "ServerException": 500, "InternalServerError": 500}
_STATUS = {
    **SERVER_FAULTS,
    "InternalServerException": 500,
    "ServiceUnavailable": 503,
    "ServiceUnavailableException": 503,
    "RequestLimitExceeded": 503,
    "SlowDown": 503,
    "InsufficientInstanceCapacity": 500,
    "MissingAuthenticationToken": 403,
    "SignatureDoesNotMatch": 403,
    "AccessDenied": 403,
    "AccessDeniedException": 403,
    "DryRunOperation": 412,
}
"""HTTP status of codes that a service's model doesn't state; all others are 400."""


class Refusal(ServiceException):
    """What AWS answers instead of doing it: an error code of its own, and a message."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)


@dataclass(frozen=True, kw_only=True)
class Call:
    """One request: `service` is botocore's name, `params` are the API's own member names."""

    service: str
    action: str
    params: Params
    operation: OperationModel
    request: Request

    @property
    def key(self) -> str:
        """As the tables of rules and handlers name it."""
        return f"{self.service}:{self.action}"


@dataclass(frozen=True, kw_only=True)
class Response:
    """What goes back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def ok(self) -> bool:
        """Whether it was done."""
        return self.status < 300


def buffered(environ: MutableMapping[str, Any]) -> None:
    """Read the body once and for all, so that we and moto can both look at it."""
    stream, length = environ["wsgi.input"], environ.get("CONTENT_LENGTH")
    chunked = environ.pop("HTTP_TRANSFER_ENCODING", "").lower() == "chunked"
    body = stream.read() if chunked else stream.read(int(length or 0))
    environ["wsgi.input"] = io.BytesIO(body)
    environ["CONTENT_LENGTH"] = str(len(body))


def taken_patience_s(call: Call, environ: MutableMapping[str, Any]) -> float:
    """How long the caller would wait for a message of SQS; the request then waits no longer by itself."""
    asked = call.params.get("WaitTimeSeconds") if call.key == "sqs:ReceiveMessage" else None
    if not asked:
        return 0.0
    body = json.dumps({**call.params, "WaitTimeSeconds": 0}).encode()
    environ["wsgi.input"], environ["CONTENT_LENGTH"] = io.BytesIO(body), str(len(body))
    return float(asked)


def scope_of(environ: Mapping[str, Any]) -> tuple[str, str] | None:
    """Service and region that the request was signed for; None where it wasn't signed."""
    found = _SCOPE.search(environ.get("HTTP_AUTHORIZATION", ""))
    if found is None:
        return None
    service = found["service"].lower()
    return _BY_SIGNING_NAME.get(service, service), found["region"]


def model_of(service: str) -> ServiceModel | None:
    """botocore's model of a service, if it has one of that name."""
    try:
        return get_service_model(service)
    except UnknownServiceError:
        return None


def parse(environ: MutableMapping[str, Any], service: str) -> Call:
    """The call; KeyError where botocore's model has no such action."""
    request, model = Request(environ), get_service_model(service)
    try:
        operation, labels = get_service_router(service).match(request)
    except (NotFound, OperationNotFoundError):
        raise KeyError(_asked(request)) from None
    parser = PROTOCOL_PARSERS[determine_request_protocol(model, request.content_type)](operation)
    params = {} if service == "s3" else parser.parse(
        {
            "method": request.method,
            "values": request.values,
            "headers": request.headers,
            "body": request.get_data(parse_form_data=False),
            "url_path": request.path,
            "url_params": labels,
        }
    )  # fmt: skip
    environ["wsgi.input"].seek(0)
    # S3's bodies are the users' data; bucket and key are all that we look at.
    named = {**labels, **(params or {})}
    return Call(service=service, action=str(operation.name), params=named, operation=operation, request=request)


def _asked(request: Request) -> str:
    target = request.headers.get("X-Amz-Target", "").rpartition(".")[2]
    return request.values.get("Action") or target or f"{request.method} {request.path}"


def answered(call: Call, answer: Answer) -> Response:
    """An answer of ours in the call's own protocol."""
    return _serialized(call.request, call.operation, answer)


def refused(request: Request, service: str, refusal: ServiceException, operation: OperationModel | None) -> Response:
    """A refusal in the protocol of the service."""
    model = get_service_model(service)
    response = _serialized(request, operation or OperationModel({}, model), refusal)
    status = _STATUS.get(refusal.code, response.status)
    return Response(status=status, headers=response.headers, body=response.body)


def _serialized(request: Request, operation: OperationModel, result: object) -> Response:
    model = operation.service_model
    protocol = determine_request_protocol(model, request.content_type)
    done = get_serializer_class(model.service_name, protocol)(operation).serialize(result)
    body = done["body"]
    return Response(
        status=int(done["status_code"]),
        headers={str(name): str(value) for name, value in done["headers"].items()},
        body=body if isinstance(body, bytes) else body.encode(),
    )


def understood(call: Call, response: Response) -> dict[str, Any]:
    """What an SDK reads out of a response; `Error` holds the code of a refusal."""
    parser = create_parser(str(call.operation.service_model.resolved_protocol))
    raw = {"status_code": response.status, "headers": dict(response.headers), "body": response.body}
    shape: Any = call.operation.output_shape  # None where an action answers nothing, which botocore's types forget
    return dict(parser.parse(raw, shape))
