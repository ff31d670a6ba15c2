# SPDX-License-Identifier: Apache-2.0
"""What sending costs `fathom agent`: bytes on the wire, CPU, an hour without a server, and the way
back. The servers take everything and look at nothing. Windows of a second at 190 Hz hold as many
samples as those of ten at 19 Hz, the default, so that an hour of them takes six minutes."""
import glob
import http.server
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request

from fathom import FATHOM, environment, scratch
from servers import built_server

HZ = 190
HOUR = int(os.environ.get("WINDOWS", "360"))  # windows of ten seconds in an hour


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Sink:
    """Takes what Pyroscope's and OTLP's HTTP endpoints take."""

    def __init__(self, port):
        sink = self
        self.requests = 0

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # or each answer waits 40 ms for an acknowledgement

            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                sink.requests += 1
                self.send_response(200)
                self.send_header("Content-Type", "application/x-protobuf" if "profiles" in self.path
                                 else "application/proto")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        threading.Thread(target=self.server.serve_forever, args=(.1,), daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class ParcaSink:
    """gRPC, by the stand-in for Parca of the scenarios."""

    def __init__(self, port):
        self.process = subprocess.Popen(
            [built_server("debuginfo"), "-http-address", "127.0.0.1:%d" % port, "-dir", scratch("sink")],
            stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 30
        while time.monotonic() < end:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                return
            except OSError:
                time.sleep(.05)
        sys.exit("the stand-in for Parca does not listen")

    def close(self):
        self.process.kill()
        self.process.wait()


class Agent:
    """Sends to the ports in TARGETS: {pyroscope, parca, otlp: port}. STORED: on this machine, too."""

    def __init__(self, name, targets, window="1s"):
        settings = scratch(name + ".yaml")
        with open(settings, "w") as f:
            if targets:
                f.write("remote-stores:\n")
            for kind, port in targets.items():
                f.write("- {type: %s, address: 'http://127.0.0.1:%d'%s}\n" % (
                    kind, port, ", otlp-unstable: true, otlp-protocol: http" if kind == "otlp" else ""))
        self.address = "127.0.0.1:%d" % free_port()
        self.process = subprocess.Popen(
            [FATHOM, "agent", "--config-path=" + settings, "-F%d" % HZ, "--profiling-duration=" + window,
             "--cpu-budget=0", "--local-store-directory=", "--spool-directory=" + scratch(name + "-spool"),
             "--http-address=" + self.address],
            env=environment(scratch("export-cache")), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.pid = self.process.pid
        self.wait(lambda: True, 30)

    def ask(self, path):
        return urllib.request.urlopen("http://%s%s" % (self.address, path), timeout=30).read().decode()

    def wait(self, condition, seconds, pause=.02):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                self.ask("/healthy")
                if condition():
                    return
            except OSError:
                if self.process.poll() is not None:
                    sys.exit("the agent ended: status %d" % self.process.returncode)
            time.sleep(pause)
        sys.exit("the agent was waited for in vain")

    def windows(self):
        return json.loads(self.ask("/status"))["windows"]

    def wait_windows(self, count):
        first = self.windows()
        self.wait(lambda: self.windows() >= first + count, 60 + 3 * count, .2)

    def sum(self, start):
        return sum(float(line.split()[-1]) for line in self.ask("/metrics").split("\n")
                   if line.startswith(start))

    def pending(self, target):
        return self.sum('fathom_remote_write_pending{target="%s"' % target)

    def cpu_s(self, thread):
        """CPU time of a thread, to the nanosecond; "" is all of them."""
        total = 0
        for folder in glob.glob("/proc/%d/task/*" % self.pid):
            with open(folder + "/comm") as comm, open(folder + "/schedstat") as stat:
                if thread in ("", comm.read().strip()):
                    total += int(stat.read().split()[0])
        return total / 1e9

    def memory_mb(self, key):
        with open("/proc/%d/status" % self.pid) as f:
            return int(re.search(key + r":\s+(\d+)", f.read()).group(1)) / 1024

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        self.process.wait(60)


def wire(show, seconds):
    """Each target's bytes and CPU, all at once and, for the CPU, against an agent without any."""
    targets = {"pyroscope": free_port(), "otlp": free_port(), "parca": free_port()}
    sinks = [ParcaSink(targets["parca"]), Sink(targets["pyroscope"]), Sink(targets["otlp"])]
    cpu = {}
    for name, some in (("none", {}), *((kind, {kind: port}) for kind, port in targets.items())):
        agent = Agent("wire-" + name, some)
        agent.wait_windows(8)  # indexes are built
        before = [agent.windows(), agent.sum("fathom_samples_total"), agent.cpu_s(""), agent.cpu_s("export"),
                  agent.sum("fathom_remote_write_sent_bytes_total"),
                  agent.sum("fathom_remote_write_requests_total")]
        agent.wait_windows(seconds)
        if some:
            agent.wait(lambda: agent.pending(name) == 0, 30)
        after = [agent.windows(), agent.sum("fathom_samples_total"), agent.cpu_s(""), agent.cpu_s("export"),
                 agent.sum("fathom_remote_write_sent_bytes_total"),
                 agent.sum("fathom_remote_write_requests_total")]
        windows, samples, all_cpu, export_cpu, sent, requests = [b - a for a, b in zip(before, after)]
        agent.stop()
        cpu[name] = 1e3 * all_cpu / windows
        if not some:
            continue
        show("sent to %s per 1,000 samples" % name, "%.1f KB in %.0f requests" % (
            sent / samples, 1e3 * requests / samples))
        show("  CPU per window of %.0f samples" % (samples / windows),
             "%.1f ms, %.1f of them to spool and send" % (cpu[name] - cpu["none"], 1e3 * export_cpu / windows))
    for sink in sinks:
        sink.close()


def drain(show, name, target, sink):
    """A new agent, which takes no samples of note, sends what NAME's spool holds."""
    server = sink(target[1])
    agent = Agent(name, dict([target]), "1h")
    agent.wait(lambda: agent.pending(target[0]) > 0, 60)  # the spool is read after the first answers
    pending = agent.pending(target[0])
    begin, cpu = time.monotonic(), agent.cpu_s("export")
    agent.wait(lambda: agent.pending(target[0]) == 0, 1200)
    wall = time.monotonic() - begin
    cpu = agent.cpu_s("export") - cpu
    sent = agent.sum("fathom_remote_write_sent_bytes_total")
    agent.stop()
    server.close()
    show("  then sent to %s: %.0f profiles, %.1f MB" % (target[0], pending, sent / 1e6),
         "%.1f s, %.2f CPU s" % (wall, cpu))


def hour(show):
    """Nobody listens for so many windows; all agents at once, one for each protocol."""
    targets = {"pyroscope": free_port(), "parca": free_port(), "otlp": free_port()}
    agents = {kind: Agent("hour-" + kind, {kind: port}) for kind, port in targets.items()}
    for agent in agents.values():
        agent.wait_windows(20)
    early = {kind: agent.memory_mb("VmHWM") for kind, agent in agents.items()}
    for kind, agent in agents.items():
        agent.wait(lambda: agent.windows() >= HOUR, 3 * HOUR + 60, .5)
        show("%d windows while %s is down: peak memory" % (HOUR, kind),
             "%.1f MB (%.1f after 20), %.1f MB spooled" % (
                 agent.memory_mb("VmHWM"), early[kind], agent.sum("fathom_spool_bytes") / 1e6))
        agent.stop()
    for kind in agents:
        drain(show, "hour-" + kind, (kind, targets[kind]), ParcaSink if kind == "parca" else Sink)


def export(show, seconds):
    wire(show, seconds)
    hour(show)
