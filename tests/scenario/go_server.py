# SPDX-License-Identifier: Apache-2.0
"""tests/workloads/gohttp, its load, and what probes leave in its code."""
import http.client
import json

from fathom import *

WAIT_S = 60
program = built("gohttp", recipe="GOTOOLCHAIN=go1.24.13 GOFLAGS=-mod=mod CGO_ENABLED=0 go build -o {out} .")


class Load:
    """Requests at a steady rate; since_last() tells about those since the last call."""

    def __init__(self, address, rate, connections):
        self.process = subprocess.Popen([program, "load", address, str(rate), str(connections)], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        preexec_fn=lambda: os.nice(10))
        self.process.stdout.readline()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def since_last(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


def code_of(pid):
    """[(address, file offset, length)] of the mappings of PROGRAM's code."""
    with open("/proc/%d/maps" % pid) as f:
        lines = [line.split() for line in f]
    return [(start, int(fields[2], 16), end - start) for fields in lines if "x" in fields[1] and fields[-1] == program
            for start, end in [[int(x, 16) for x in fields[0].split("-")]]]


def breakpoints(pid):
    """How many bytes of its code are not those of the file."""
    changed = 0
    with open("/proc/%d/mem" % pid, "rb", 0) as memory, open(program, "rb") as file:
        for start, off, length in code_of(pid):
            memory.seek(start)
            file.seek(off)
            now, then = memory.read(length), file.read(length)
            changed += sum(a != b for a, b in zip(now, then)) if now[:len(then)] != then else 0
    return changed


def uprobe_links():
    """The kernel's links of probes on functions, and the events that stand for them where it has no such links."""
    r = subprocess.run(["bpftool", "-j", "link"], capture_output=True, text=True)
    if r.returncode:
        stop("bpftool link: %s" % r.stderr)
    return {link["id"] for link in json.loads(r.stdout) if link["type"] in ("uprobe_multi", "perf_event")}


class GoServer(Workload):
    def __init__(self, path=program):
        super().__init__([path, "serve"])
        self.address = self.facts["address"][0]

    def stats(self):
        host, port = self.address.split(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=WAIT_S)
        connection.request("GET", "/stats")
        answer = json.loads(connection.getresponse().read())
        connection.close()
        return answer
