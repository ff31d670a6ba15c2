# SPDX-License-Identifier: Apache-2.0
"""Container runtimes as the agent sees them: CriServer answers by gRPC (cri_grpc.py), BrokenServer does not."""
import base64
import contextlib
import json
import random
import socketserver
import uuid

from push_server import *
from servers import field, varint


# ---- messages of package runtime.v1: github.com/kubernetes/cri-api, pkg/apis/runtime/v1/api.proto ---
def number(n, value):
    return varint(n << 3) + varint(value)


def pairs(n, items):
    return b"".join(field(n, field(1, k) + field(2, v)) for k, v in items.items())


def sandbox(id, name, namespace="default", uid="", labels={}, annotations={}, state=0):
    kubelets = {"io.kubernetes.pod.name": name, "io.kubernetes.pod.namespace": namespace}
    metadata = field(1, name) + field(2, uid) + field(3, namespace) + number(4, 1)
    return field(1, id) + field(2, metadata) + number(3, state) + number(4, 1 << 60) + pairs(
        5, {**labels, **kubelets}) + pairs(6, annotations) + field(7, "runc")


def container(id, pod, name, image="registry.example/app:1", labels={}):
    return field(1, id) + field(2, pod) + field(3, field(1, name) + number(2, 3)) + field(
        4, field(1, "sha256:ab") + field(18, image)) + field(5, "sha256:ab") + number(6, 1) + number(
        7, 1 << 60) + pairs(8, labels) + pairs(9, {"io.kubernetes.container.hash": "1f"})


def listed(items):
    return b"".join(field(1, item) for item in items)


def version(name="containerd"):
    return field(1, "0.1.0") + field(2, name) + field(3, "v1.7.24") + field(4, "v1")


# ---- answers of a real containerd -----------------------------------------------------------
def texts(message):
    """Texts of a message by number; of several the last."""
    return {n: bytes(v).decode() for n, v in pprof_read.fields(message) if not isinstance(v, int)}


class AnsweredPod:
    """What cri_answers.json tells of a pod: SANDBOX, and TOLD of its containers, which are called CONTAINERS."""

    def __init__(self, sandbox, told):
        self.sandbox, self.told = bytes(sandbox), [bytes(t) for t in told]
        inside = dict(pprof_read.fields(self.sandbox))
        identity = texts(inside[2])
        self.id, self.name, self.uid, self.namespace = bytes(inside[1]).decode(), identity[1], identity[2], identity[3]
        self.ids = [bytes(dict(pprof_read.fields(t))[1]).decode() for t in told]
        self.containers = [texts(dict(pprof_read.fields(t))[3])[1] for t in told]

    def copy(self, number):
        """Another pod like it. What is its own is replaced by as many bytes."""
        changes = [(id, new_id()) for id in (self.id, *self.ids)]
        changes += [(self.uid, str(uuid.uuid4())), (self.name, self.name[:-5] + "%05d" % number)]

        def changed(message):
            for old, new in changes:
                message = message.replace(old.encode(), new.encode())
            return message
        return AnsweredPod(changed(self.sandbox), [changed(t) for t in self.told])


def answered_pods():
    """Those of cri_answers.json: base64 of what containerd 1.6.20 answered to an empty request."""
    with open(os.path.join(TESTS, "scenario/cri_answers.json")) as f:
        answers = {m: base64.b64decode(a) for m, a in json.load(f).items()}
    sandboxes, told = ([v for _, v in pprof_read.fields(answers[m])] for m in ("ListPodSandbox", "ListContainers"))
    of = lambda sandbox: [t for t in told if dict(pprof_read.fields(t))[2] == dict(pprof_read.fields(sandbox))[1]]
    return [AnsweredPod(s, of(s)) for s in sandboxes]


# ---- containers -----------------------------------------------------------------------------
def new_id():
    return os.urandom(32).hex()


@contextlib.contextmanager
def in_cgroup(program, root, *path):
    """PROGRAM, busy, in a cgroup of that PATH, made for it."""
    folders = [os.path.join(root, *path[:n + 1]) for n in range(len(path))]
    made = []
    try:
        for folder in folders:
            if not os.path.isdir(folder):
                os.mkdir(folder)
                made.append(folder)
        join = "echo $$ > %s/cgroup.procs && exec %s 600" % (folders[-1], program)
        with Workload(["sh", "-c", join]) as w:
            yield w
    finally:
        for folder in reversed(made):
            wait_until(lambda: removed(folder), "%s is empty" % folder)


def removed(folder):
    with contextlib.suppress(OSError):
        os.rmdir(folder)
    return not os.path.exists(folder)


# ---- servers --------------------------------------------------------------------------------
def python_with_grpc():
    for python in ("/usr/bin/python3", sys.executable):
        if subprocess.run([python, "-c", "import grpc"], capture_output=True).returncode == 0:
            return python
    stop("no Python has grpc: install python3-grpcio")


class CriServer:
    """`with` ends it. Answers nothing until tell()."""

    def __init__(self, path):
        self.path, self.changed, self.calls = path, threading.Condition(), collections.Counter()
        if os.path.exists(path):
            os.unlink(path)
        self.process = subprocess.Popen(
            [python_with_grpc(), os.path.join(TESTS, "scenario/cri_grpc.py"), path],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != "ready\n":
            stop("the gRPC server does not start")
        threading.Thread(target=self.read, daemon=True).start()
        self.answers(Version=version())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def read(self):
        for line in self.process.stdout:
            with self.changed:
                self.calls[line.split()[1]] += 1
                self.changed.notify_all()

    def send(self, **command):
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()

    def answers(self, **bodies):
        self.send(answers={m: base64.b64encode(b).decode() for m, b in bodies.items()})

    def tell(self, pods, containers):
        self.answers(ListPodSandbox=listed(pods), ListContainers=listed(containers))

    def mode(self, **modes):
        self.send(mode=modes)

    def event(self, message=b"\x0a\x02ab\x10\x01"):
        self.send(event=base64.b64encode(message).decode())

    def wait_calls(self, method, more=1):
        """Waits for MORE calls from now on."""
        with self.changed:
            target = self.calls[method] + more
            if not self.changed.wait_for(lambda: self.calls[method] >= target, WAIT_S):
                stop("%s is not called" % method)


class BrokenServer:
    """Accepts connections and lets BEHAVE deal with each."""

    def __init__(self, path, behave):
        server = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self):
                server.connections += 1
                with contextlib.suppress(OSError):
                    behave(self.request, server.ending)

        class Listening(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
            daemon_threads = True
            block_on_close = False

        if os.path.exists(path):
            os.unlink(path)
        self.connections, self.ending = 0, threading.Event()
        self.listening = Listening(path, Handler)
        threading.Thread(target=self.listening.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ending.set()
        self.listening.shutdown()
        self.listening.server_close()


def http2_frame(kind, flags, stream, payload):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


# RFC 9113: SETTINGS, then HEADERS with `:status: 200` (index 8 of HPACK's static table).
HTTP2_BEGINNING = http2_frame(4, 0, 0, b"") + http2_frame(4, 1, 0, b"") + http2_frame(1, 4, 1, b"\x88")


def hangs(connection, ending):
    ending.wait()


def closes(connection, ending):
    connection.recv(10)


def writes_garbage(connection, ending):
    connection.sendall(random.Random(7).randbytes(100000))
    ending.wait(1)


def speaks_http1(connection, ending):
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
    ending.wait(1)


def claims_4_gigabytes(connection, ending):
    connection.sendall(HTTP2_BEGINNING + http2_frame(0, 0, 1, b"\0\xff\xff\xff\xff" + b"x" * 100))
    ending.wait()


def drips(connection, ending):
    connection.sendall(HTTP2_BEGINNING + http2_frame(0, 0, 1, b"\0\0\1\0\0"))
    while not ending.wait(.2):
        connection.sendall(http2_frame(0, 0, 1, b"\x0a"))


def ends_without_status(connection, ending):
    connection.sendall(HTTP2_BEGINNING + http2_frame(0, 1, 1, b"\0\0\0\0\0"))
    ending.wait(1)
