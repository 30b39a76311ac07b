"""Acquires, checks and releases with a stock client: grpcio and protobuf, and nothing of Writ's.

The contract is asked of the coordinator itself, by server reflection, so no code is generated.

    python3 python_client.py 127.0.0.1:7410 .writ/dev-tokens.json
"""

import json
import sys
import time
import uuid

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

FIELD = descriptor_pb2.FieldDescriptorProto


def message_class(pool, name):
    descriptor = pool.FindMessageTypeByName(name)
    if hasattr(message_factory, "GetMessageClass"):  # protobuf 4.22 and later
        return message_factory.GetMessageClass(descriptor)
    return message_factory.MessageFactory(pool).GetPrototype(descriptor)


def declare(package, messages):
    """A small contract by hand: {message: [(number, name, type, repeated)]}; a type in quotes is another message."""
    file = descriptor_pb2.FileDescriptorProto(name=package + ".proto", package=package, syntax="proto3")
    for message, fields in messages.items():
        declared = file.message_type.add(name=message)
        for number, name, kind, repeated in fields:
            label = FIELD.LABEL_REPEATED if repeated else FIELD.LABEL_OPTIONAL
            field = declared.field.add(number=number, name=name, label=label)
            field.type = FIELD.TYPE_MESSAGE if isinstance(kind, str) else kind
            if isinstance(kind, str):
                field.type_name = "." + package + "." + kind
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {message: message_class(pool, package + "." + message) for message in messages}


# https://github.com/grpc/grpc/blob/master/src/proto/grpc/reflection/v1/reflection.proto, as much as is needed.
REFLECTION = declare("grpc.reflection.v1", {
    "ServerReflectionRequest": [(3, "file_by_filename", FIELD.TYPE_STRING, False),
                                (4, "file_containing_symbol", FIELD.TYPE_STRING, False),
                                (7, "list_services", FIELD.TYPE_STRING, False)],
    "ServerReflectionResponse": [(4, "file_descriptor_response", "Files", False),
                                 (6, "list_services_response", "Services", False),
                                 (7, "error_response", "Problem", False)],
    "Files": [(1, "file_descriptor_proto", FIELD.TYPE_BYTES, True)],
    "Services": [(1, "service", "Service", True)],
    "Service": [(1, "name", FIELD.TYPE_STRING, False)],
    "Problem": [(1, "error_code", FIELD.TYPE_INT32, False), (2, "error_message", FIELD.TYPE_STRING, False)],
})

# google.rpc.Status with its details, and google.rpc.ErrorInfo; the numbers are all that matters.
STATUS = declare("writ.example.status", {
    "Status": [(3, "details", "Any", True)],
    "Any": [(1, "type_url", FIELD.TYPE_STRING, False), (2, "value", FIELD.TYPE_BYTES, False)],
    "ErrorInfo": [(1, "reason", FIELD.TYPE_STRING, False), (2, "domain", FIELD.TYPE_STRING, False)],
})


class Writ:
    """A coordinator as one principal sees it: call("LeaseService/GetLease", lease_id="...")."""

    def __init__(self, endpoint, token, reflection="grpc.reflection.v1"):
        self.channel = grpc.insecure_channel(endpoint)
        self.metadata = (("authorization", "Bearer " + token),)
        self.reflection = reflection
        self.pool = descriptor_pool.DescriptorPool()
        self.loaded = set()

    def reflect(self, **question):
        call = self.channel.stream_stream(
            "/" + self.reflection + ".ServerReflection/ServerReflectionInfo",
            request_serializer=REFLECTION["ServerReflectionRequest"].SerializeToString,
            response_deserializer=REFLECTION["ServerReflectionResponse"].FromString)
        request = REFLECTION["ServerReflectionRequest"](**question)
        answer = next(call(iter([request]), metadata=self.metadata, timeout=10))
        if answer.HasField("error_response"):
            raise LookupError(answer.error_response.error_message)
        return answer

    def services(self):
        return sorted(one.name for one in self.reflect(list_services="*").list_services_response.service)

    def load(self, answer):
        """Adds files to the pool, each after what it imports."""
        files = [descriptor_pb2.FileDescriptorProto.FromString(raw)
                 for raw in answer.file_descriptor_response.file_descriptor_proto]
        self._add({file.name: file for file in files}, files)

    def _add(self, known, files):
        for file in files:
            if file.name in self.loaded:
                continue
            self.loaded.add(file.name)
            for name in file.dependency:
                if name in known:
                    self._add(known, [known[name]])
                elif name not in self.loaded:
                    self.load(self.reflect(file_by_filename=name))
            self.pool.Add(file)

    def call(self, method, timeout=30, **fields):
        service, name = method.split("/")
        symbol = "writ.v1." + service
        try:
            found = self.pool.FindServiceByName(symbol)
        except KeyError:
            self.load(self.reflect(file_containing_symbol=symbol))
            found = self.pool.FindServiceByName(symbol)
        described = found.methods_by_name[name]
        request = message_class(self.pool, described.input_type.full_name)(**fields)
        response = message_class(self.pool, described.output_type.full_name)
        stub = self.channel.unary_unary(
            "/" + symbol + "/" + name,
            request_serializer=type(request).SerializeToString, response_deserializer=response.FromString)
        return stub(request, metadata=self.metadata, timeout=timeout)

    def word(self, enum, value):
        """The name of an enum's value, such as FENCE_REASON_OK."""
        return self.pool.FindEnumTypeByName("writ.v1." + enum).values_by_number[value].name


def reason_of(error):
    """The stable reason of a fault: google.rpc.ErrorInfo in the trailer grpc-status-details-bin."""
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            for detail in STATUS["Status"].FromString(value).details:
                if detail.type_url.endswith("/google.rpc.ErrorInfo"):
                    return STATUS["ErrorInfo"].FromString(detail.value).reason
    return ""


def fault_of(work):
    try:
        work()
    except grpc.RpcError as error:
        return error.code().name + " " + reason_of(error)
    return "none"


CONFLICT_MAP = """
version: 1
kinds:
  - pattern: release/{env}
    ttl: 60s
    actions:
      promote: { concurrency: lease, change_class: shared_pointer }
"""


def main(endpoint, tokens_file):
    with open(tokens_file, encoding="utf-8") as file:
        tokens = json.load(file)
    admin, runner, target = (Writ(endpoint, tokens[role]) for role in ("admin", "runner", "target"))
    told = {"services": runner.services()}
    told["services_v1alpha"] = Writ(endpoint, tokens["runner"], "grpc.reflection.v1alpha").services()

    # The first map, unless there is one already.
    if admin.call("ConflictMapService/GetConflictMap").version == 0:
        admin.call("ConflictMapService/PutConflictMap", document=CONFLICT_MAP, expected_version=0, reason="example")

    def create_run():
        allowed = [{"pattern": "release/{env}", "actions": ["promote"]}]
        return runner.call("RunService/CreateRun", purpose="promote 4.2", allowed=allowed,
                           authority_ends_at={"seconds": int(time.time()) + 600},
                           idempotency_key=str(uuid.uuid4())).run.run_id

    def acquire(run_id, key):
        # ACCESS_WRITE is 3: enum values are numbers here, or names where a message is made from JSON.
        entry = {"resource": "release/prod-eu", "access": 3, "actions": ["promote"]}
        return runner.call("LeaseService/AcquireWriteSet", run_id=run_id, entries=[entry], idempotency_key=key)

    run_id, key = create_run(), str(uuid.uuid4())
    answer = acquire(run_id, key)
    if answer.WhichOneof("outcome") != "lease":
        sys.exit("refused: " + answer.refusal.message)
    lease = answer.lease
    token = lease.entries[0].fencing_token
    told["granted"] = token > 0
    told["same_key_same_lease"] = acquire(run_id, key).lease.lease_id == lease.lease_id

    other = acquire(create_run(), str(uuid.uuid4()))
    told["other_run"] = runner.word("RefusalKind", other.refusal.kind)

    # What a target service asks before it accepts a protected write. By the request id it reports afterwards what became
    # of it: actions that the map tracks are not let in without one, and keep their resource until they are reported.
    def check(action, request_id):
        write = {"resource": "release/prod-eu", "action": action, "fencing_token": token}
        verdict = target.call("FenceService/CheckFence", lease_id=lease.lease_id, presenter_run_id=run_id,
                              writes=[write], request_id=request_id)
        return target.word("FenceReason", verdict.results[0].reason)

    def report(action, request_id, version):
        # WRITE_RESULT_SUCCEEDED is 1.
        write = {"resource": "release/prod-eu", "action": action, "result": 1, "new_version": version}
        target.call("FenceService/ReportWrite", lease_id=lease.lease_id, request_id=request_id, writes=[write])

    request_id = str(uuid.uuid4())
    told["check"] = check("promote", request_id)
    report("promote", request_id, "42")
    told["check_other_action"] = check("delete", str(uuid.uuid4()))
    released = runner.call("LeaseService/ReleaseLease", run_id=run_id, lease_id=lease.lease_id)
    told["release"] = runner.word("ReleaseOutcome", released.outcome)
    told["check_after_release"] = check("promote", str(uuid.uuid4()))

    # Faults are gRPC statuses with a stable reason.
    told["unknown_run"] = fault_of(lambda: runner.call("RunService/GetRun", run_id="0" * 32))
    told["wrong_role"] = fault_of(lambda: target.call("RunService/GetRun", run_id=run_id))
    told["no_token"] = fault_of(lambda: Writ(endpoint, "unknown").services())
    print(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
