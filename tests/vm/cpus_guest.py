#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs in a guest of tests/vm/cpus: prints one line of figures of the agent on this number of CPUs."""
import os
import re
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from unix_http import get  # noqa: E402

FATHOM = os.environ["FATHOM"]
SOCKET = "/tmp/fathom.socket"
SECONDS = 20


def metrics():
    return get(SOCKET, "/metrics", 120)[1].decode()


def total(text, name):
    return sum(float(line.split()[-1]) for line in text.split("\n") if re.match(re.escape(name) + r"[{ ]", line))


def bytes_mapped(pid, name):
    with open("/proc/%d/maps" % pid) as f:
        spans = [line.split()[0].split("-") for line in f if name in line]
    return sum(int(end, 16) - int(start, 16) for start, end in spans)


def status_kb(pid, key):
    with open("/proc/%d/status" % pid) as f:
        return int(re.search(key + r":\s+(\d+)", f.read()).group(1))


def available_kb():
    with open("/proc/meminfo") as f:
        return int(re.search(r"MemAvailable:\s+(\d+)", f.read()).group(1))


def cpu_seconds(pid):
    with open("/proc/%d/schedstat" % pid) as f:
        return int(f.read().split()[0]) / 1e9


def period(pid):
    """(own CPU s, samples, lost) in SECONDS"""
    before, cpu = metrics(), cpu_seconds(pid)
    time.sleep(SECONDS)
    after = metrics()
    return (cpu_seconds(pid) - cpu, *(total(after, n) - total(before, n)
                                      for n in ("fathom_samples_total", "fathom_samples_lost_total")))


before_kb = available_kb()
agent = subprocess.Popen([FATHOM, "agent", "--http-address=unix:" + SOCKET, "--http-socket=", "--cpu-budget=0",
                          "--local-store-directory=", "--log-level=info"], stdin=subprocess.DEVNULL,
                         stderr=subprocess.PIPE, text=True)
if not any('msg="sampling"' in line for line in agent.stderr):
    sys.exit("the agent did not start")
time.sleep(SECONDS)
idle = period(agent.pid)
taken_kb = before_kb - available_kb()
busy = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(os.cpu_count())]
time.sleep(5)
load = period(agent.pid)
for p in busy:
    p.kill()
print("cpus=%d maps=%d rings=%d anon_kb=%d node_kb=%d idle_cpu_ms_a_second=%.2f busy_us_a_sample=%.1f samples=%d lost=%d" % (
    os.cpu_count(), total(metrics(), "fathom_bpf_map_memory_bytes"), bytes_mapped(agent.pid, "[perf_event]"),
    status_kb(agent.pid, "RssAnon"), taken_kb, 1e3 * idle[0] / SECONDS, 1e6 * load[0] / max(load[1], 1), load[1], load[2]))
agent.send_signal(signal.SIGTERM)
agent.communicate(timeout=300)
sys.exit(agent.returncode)
