# SPDX-License-Identifier: Apache-2.0
"""Starts the servers that profiles are sent to, and asks their query APIs."""
import base64
import collections
import gzip
import http.server as http_server
import json
import socket
import threading
import time
import types
import urllib.error
import urllib.parse
import urllib.request

from fathom import *

WAIT_S = 60
SERVERS = os.path.join(TESTS, "servers")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def http(url, data=None, headers={}):
    """Status and body, also of errors."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=WAIT_S) as r:
            return r.status, r.read()
    except urllib.error.HTTPError as e:
        return e.code, e.read()


def wait_until(what, question):
    """The first true answer of QUESTION; ends the test if there is none."""
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        try:
            answer = question()
        except OSError:
            answer = None
        if answer:
            return answer
        time.sleep(.1)
    stop("waited %d s for %s" % (WAIT_S, what))


def built_server(name):
    """tests/servers/NAME, rebuilt with Go if it is older than its sources."""
    source = os.path.join(SERVERS, name)
    out = os.path.join(BUILD, "tests/servers", name)
    newest = max(os.path.getmtime(os.path.join(source, f)) for f in os.listdir(source))
    if os.path.exists(out) and os.path.getmtime(out) >= newest:
        return out
    if not shutil.which("go"):
        stop("go is not installed: sudo ./setup test")
    os.makedirs(os.path.dirname(out), exist_ok=True)
    r = subprocess.run(["go", "build", "-o", out, "."], cwd=source, capture_output=True, text=True)
    if r.returncode:
        stop("building tests/servers/%s:\n%s" % (name, r.stderr))
    return out


class Server:
    def __init__(self, argv, address, ready):
        self.address, self.log = address, open(scratch("server-%d.log" % free_port()), "w+")
        self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=self.log,
                                        stderr=subprocess.STDOUT, start_new_session=True)
        wait_until("%s to be ready" % argv[0],
                   lambda: http("http://%s/%s" % (address, ready))[0] == 200)

    def alive(self):
        return self.process.poll() is None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.log.close()


class Parca(Server):
    def __init__(self, binary, address=None):
        address = address or "127.0.0.1:%d" % free_port()
        os.makedirs(scratch("parca/cache"), exist_ok=True)
        super().__init__([binary, "-http-address", address, "-dir", scratch("parca")], address,
                         "metrics")

    def get(self, path, **parameters):
        status, body = http("http://%s/api/profiles/%s?%s" % (
            self.address, path, urllib.parse.urlencode(parameters)))
        return json.loads(body) if status == 200 else None

    def types(self):
        return ["%(name)s:%(sampleType)s:%(sampleUnit)s:%(periodType)s:%(periodUnit)s" % t +
                (":delta" if t.get("delta") else "") for t in self.get("types")["types"]]

    def label_values(self, name):
        return (self.get("labels/%s/values" % name) or {}).get("labelValues", [])

    def series(self, query):
        r = self.get("query_range", query=query, start=stamp(-3600), end=stamp(3600))
        return r["series"] if r else []

    def profile(self, query):
        """All profiles of QUERY merged, or None while there are none."""
        r = self.get("query", **{"mode": "MODE_MERGE", "merge.query": query,
                                 "merge.start": stamp(-3600), "merge.end": stamp(3600),
                                 "report_type": "REPORT_TYPE_PPROF"})
        return profile_of_answer(r) if r else None


def profile_of_answer(answer):
    """Of Parca's query, from its JSON."""
    return pprof_read.Profile(base64.b64decode(answer["pprof"]))


def stamp(offset_s):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + offset_s))


def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, value):
    """A length-delimited field: a message, or a string, which may be any bytes."""
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


class Pyroscope(Server):
    """The strict test server, or the real one that PYROSCOPE_BIN names."""

    def __init__(self, *options, address=None):
        address = address or "127.0.0.1:%d" % free_port()
        real = os.environ.get("PYROSCOPE_BIN")
        argv = [built_server("pyroscope"), "-address", address, *options]
        if real:
            argv = self.real_argv(real, address)
        super().__init__(argv, address, "ready")

    @staticmethod
    def real_argv(binary, address):
        rings = ["-%s=127.0.0.1" % o for o in (
            "segment-writer.lifecycler.addr", "memberlist.advertise-addr", "memberlist.bind-addr",
            "distributor.ring.instance-addr", "query-frontend.instance-addr",
            "compactor.ring.instance-addr")]
        grpc = free_port()
        return [binary, "-target=all", "-server.http-listen-address=127.0.0.1",
                "-server.http-listen-port=" + address.split(":")[1], "-server.grpc-listen-port=%d" % grpc,
                "-metastore.address=127.0.0.1:%d" % grpc, "-query-backend.address=127.0.0.1:%d" % grpc,
                "-segment-writer.min-ready-duration=0s", "-metastore.min-ready-duration=0s",
                "-usage-stats.enabled=false", "-self-profiling.disable-push",
                "-storage.backend=filesystem", "-storage.filesystem.dir=" + scratch("pyroscope"),
                "-metastore.data-dir=" + scratch("metastore"),
                "-metastore.raft.dir=" + scratch("raft"), *rings]

    def range(self):
        now = int(time.time() * 1000)
        return now - 3600000, now + 3600000

    def ask(self, method, data, kind):
        status, body = http("http://%s/querier.v1.QuerierService/%s" % (self.address, method), data,
                            {"Content-Type": "application/" + kind})
        return body if status == 200 else None

    def json(self, method, **fields):
        start, end = self.range()
        return json.loads(self.ask(method, json.dumps(dict(fields, start=start, end=end)).encode(),
                                   "json") or "{}")

    def types(self):
        return [t["ID"] for t in self.json("ProfileTypes").get("profileTypes", [])]

    def series(self):
        return [{p["name"]: p["value"] for p in s["labels"]}
                for s in self.json("Series").get("labelsSet", [])]

    def of_span(self, kind, selector, span):
        """The sum of the samples of a span."""
        r = self.json("SelectMergeSpanProfile", profileTypeID=kind, labelSelector=selector, spanSelector=[span])
        return int(r.get("flamegraph", {}).get("total", 0))

    def profile(self, kind, selector):
        start, end = self.range()
        body = self.ask("SelectMergeProfile",
                        field(1, kind) + field(2, selector) +
                        varint(3 << 3) + varint(start) + varint(4 << 3) + varint(end), "proto")
        profile = pprof_read.Profile(body) if body else None
        return profile if profile and profile.samples else None


Place = collections.namedtuple("Place", "address")


class OtlpCollector(Server):
    """The OpenTelemetry Collector's own receiver, at two ports; refuses whatever breaks a rule."""

    def __init__(self, *options):
        address, grpc, http = ("127.0.0.1:%d" % free_port() for _ in range(3))
        self.grpc, self.http = Place(grpc), Place(http)
        super().__init__([os.environ.get("OTLP_COLLECTOR_BIN") or built_server("otlp"), "-address",
                          address, "-grpc", grpc, "-http", http, *options], address, "ready")

    def got(self):
        return json.loads(http("http://%s/profiles" % self.address)[1])

    def profiles(self, kind, **resource):
        """All received profiles of a type ("cpu", "nanoseconds") with the attributes RESOURCE."""
        return [p for p in self.got()["profiles"] if tuple(p["type"]) == kind and
                resource.items() <= p["resource"].items()]

    def profile(self, kind, **resource):
        """These merged into one, for comparison with a pprof_read.Profile."""
        return types.SimpleNamespace(samples=[s for p in self.profiles(kind, **resource)
                                              for s in p["samples"]])


def stacks(profile, value):
    """Weight by stack. An unnamed frame is known by its address and mapping."""
    sums = collections.Counter()
    for s in profile.samples:
        key = tuple((f["func"], f["system"], f["file"], f["line"], f["start"], f["inlined"])
                    if f["func"] else (f["address"], f["mapping"], f["build_id"])
                    for f in s["frames"])
        sums[key] += s["values"][value]
    return +sums


def same_stacks(sent, got, what):
    """Checks that both stacks() are equal: types, sums, order, inlined frames, files and lines."""
    check(sum(got.values()) == sum(sent.values()),
          "%s: the sum is %d, was %d" % (what, sum(got.values()), sum(sent.values())))
    missing, new = sent - got, got - sent
    check(not missing and not new, "%s: %d of %d stacks differ" % (what, len(missing), len(sent)))
    for name, some in (("missing", missing), ("new", new)):
        for key in list(some)[:2]:
            print("  %s: %d %s" % (name, some[key], key))


def gzip_plain(path):
    with gzip.open(path) as f:
        return f.read()


def upload(server, kind, *files, options=()):
    return fathom("upload", "--remote-store-type=" + kind,
                  "--remote-store-address=http://" + server.address,
                  "--metadata-external-labels=node=n1,zone=a b", *options, *files)


def stripped_go_program():
    if not shutil.which("go"):
        stop("go is not installed: sudo ./setup test")
    return built("goid", "goid-stripped",
                 "CGO_ENABLED=0 GOFLAGS=-mod=mod go build -ldflags='-s -w' -o {out} .")


def record_go_and_cpp():
    """Files with their names: (inline.pb.gz, goid.pb.gz) of a C++ and a Go program."""
    go = stripped_go_program()
    files = {}
    for name, argv in (("inline", [built("inline.cc"), "120"]), ("goid-stripped", [go, "120"])):
        with Workload(argv) as w:
            r = record("-F", "199", "-p", w.pid, "-d", "2")
        check(len(r.profile.samples) > 3, "%s: %d different samples" % (name, len(r.profile.samples)))
        files[name] = scratch(name + ".pb.gz")
        os.rename(scratch("profile.pb.gz"), files[name])
    return files


def heap_profile():
    """A Go program's own heap profile."""
    program = built("heap", recipe="CGO_ENABLED=0 GOFLAGS=-mod=mod go build -o {out} .")
    subprocess.run([program, scratch("heap.pb.gz")], check=True, stdin=subprocess.DEVNULL)
    return scratch("heap.pb.gz")


class OldProxy:
    """A proxy to SERVER that speaks HTTP/1.1 only."""

    def __init__(self, server):
        class Handler(http_server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status, answer = http("http://%s%s" % (server.address, self.path), body,
                                      {"Content-Type": self.headers["Content-Type"]})
                paths.append(self.path)
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        self.paths = paths = []
        self.server = http_server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = "127.0.0.1:%d" % self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
