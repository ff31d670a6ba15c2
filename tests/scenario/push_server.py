# SPDX-License-Identifier: Apache-2.0
"""A server that accepts what Pyroscope accepts (push.v1.PusherService/Push), remembers it, and
misbehaves as `mode` says:

    ok, 500, 503, 429 (with Retry-After: 1)
    slow    answers only once the mode changes
    cut     takes the payload and closes the connection without an answer
    away    does not listen
"""
import gzip
import hashlib
import http.server
import socketserver
import threading

from agent import *


def labels_of(series):
    pairs = [dict(pprof_read.fields(value)) for number, value in pprof_read.fields(series) if number == 1]
    return {pair[1].decode(): pair[2].decode() for pair in pairs}


def profiles_of(series):
    for number, sample in pprof_read.fields(series):
        if number == 2:
            yield dict(pprof_read.fields(sample))[1]


class Payload:
    def __init__(self, labels, raw):
        self.labels = labels
        self.came = time.monotonic()
        self.profile = pprof_read.Profile(raw)
        self.time_ns = self.profile.time_ns
        self.count = sum(s["values"][0] for s in self.profile.samples)
        self.bytes = len(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)
        self.key = hashlib.sha256(repr(sorted(labels.items())).encode() + raw).digest()


class Listener(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    allow_reuse_address = True


class PushServer:
    def __init__(self, poison=lambda payload: False, port=0):
        self.poison = poison
        self.changed = threading.Condition()
        self.arrived = []  # accepted payloads, duplicates included
        self.refused = []
        self.cut = set()  # keys of payloads accepted without an answer
        self.most = 0  # the most payloads in one request
        self.requests = collections.Counter()  # by mode
        self.mode, self.port, self.listener = "away", port, None
        self.set("ok")

    def set(self, mode):
        with self.changed:
            old, self.mode = self.mode, mode
            self.changed.notify_all()
        if mode == "away" and old != "away":
            self.listener.shutdown()
            self.listener.server_close()
        elif mode != "away" and old == "away":
            self.listener = Listener(("127.0.0.1", self.port), self.handler())
            self.port = self.listener.server_address[1]
            threading.Thread(target=self.listener.serve_forever, args=(.05,), daemon=True).start()

    def during(self, mode, requests):
        """Stays in MODE for that many requests."""
        before = self.requests[mode]
        self.set(mode)
        with self.changed:
            if not self.changed.wait_for(lambda: self.requests[mode] >= before + requests, 4 * WAIT_S):
                stop("no %d requests while the server is %s" % (requests, mode))

    def doubles(self):
        """What is stored twice: a payload that is refused, even twice, is not."""
        with self.changed:
            return len(self.arrived) - len({p.key for p in self.arrived})

    def cut_came_again(self):
        """Whether every payload accepted without an answer was sent again."""
        with self.changed:
            came = collections.Counter(p.key for p in self.arrived + self.refused)
            return all(came[key] > 1 for key in self.cut)

    def take(self, body, cut):
        """The HTTP status for it."""
        payloads = [Payload(labels_of(series), raw) for number, series in pprof_read.fields(body)
                    if number == 1 for raw in profiles_of(series)]
        self.most = max(self.most, len(payloads))
        if cut:
            self.cut.update(p.key for p in payloads)
        bad = any(self.poison(p) for p in payloads)
        (self.refused if bad else self.arrived).extend(payloads)
        return 400 if bad else 200

    def answer(self, body):
        """(status, headers), or None to cut the connection."""
        with self.changed:
            mode = self.mode
            self.requests[mode] += 1
            self.changed.notify_all()
            if mode == "slow":
                self.changed.wait_for(lambda: self.mode != "slow", 4 * WAIT_S)
            if mode in ("ok", "slow", "cut"):
                status = self.take(body, mode == "cut")
                return None if mode == "cut" else (status, {})
            if mode == "away":
                return None
            return int(mode), {"Retry-After": "1"} if mode == "429" else {}

    def handler(server):  # noqa: N805
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                answer = server.answer(body)
                if answer is None:
                    self.close_connection = True
                    return
                self.send_response(answer[0])
                for name, value in answer[1].items():
                    self.send_header(name, value)
                text = b'{"code":"invalid_argument","message":"a poisonous one"}' if answer[0] >= 400 else b""
                self.send_header("Content-Type", "application/json" if text else "application/proto")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_):
                pass

        return Handler

    def options(self):
        return ["--remote-store-type=pyroscope", "--remote-store-address=http://127.0.0.1:%d" % self.port]
