# SPDX-License-Identifier: Apache-2.0
"""What `fathom agent` costs as the machine grows: by number of processes, of mappings of a process, of containers, of
programs executed in a second, by the length of a window and by the rate. Each point is an agent of its own; the same
programs use half a CPU, whatever their number, so that what differs is the number."""
import contextlib
import os
import shutil
import threading
import time

from agent import WARM_SECONDS, Agent, memory_mb, run_seconds
from fathom import Workload, built, cgroup2_root, scratch

HZ = 97
AXES = ("processes", "mappings", "containers", "execs", "window", "rate")


class Peak(threading.Thread):
    """The largest RssAnon of a process, looked at four times a second."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.mb, self.ended = pid, 0, threading.Event()

    def run(self):
        while not self.ended.wait(.25):
            with contextlib.suppress(OSError, AttributeError):
                self.mb = max(self.mb, memory_mb(self.pid, "RssAnon"))


def figures(hz, window, seconds, cache):
    agent = Agent(hz, cache, window)
    peak = Peak(agent.pid)
    peak.start()
    try:
        first, first_cpu = agent.first_sample_seconds()
        time.sleep(WARM_SECONDS)
        names = {"samples": "fathom_samples_total", "bpf": 'fathom_overhead_cpu_seconds_total{part="bpf"}',
                 "lost": "fathom_samples_lost_total"}
        before, cpu = {k: agent.labelled(name) for k, name in names.items()}, run_seconds(agent.pid)
        time.sleep(seconds)
        cpu = run_seconds(agent.pid) - cpu
        moved = {k: agent.labelled(name) - before[k] for k, name in names.items()}
        taken = max(moved["samples"], 1)
        return {"own us": 1e6 * cpu / taken, "bpf us": 1e6 * moved["bpf"] / taken, "percent": 100 * cpu / seconds,
                "anon": memory_mb(agent.pid, "RssAnon"), "peak": max(peak.mb, memory_mb(agent.pid, "RssAnon")),
                "maps": agent.counter("fathom_bpf_map_memory_bytes") / 1e6, "first ms": 1e3 * first,
                "first cpu ms": 1e3 * first_cpu, "samples": taken, "lost": moved["lost"]}
    finally:
        peak.ended.set()
        agent.stop()
        shutil.rmtree(agent.store, ignore_errors=True)


def crowd(count, *cgroups):
    return Workload([built("crowd.c"), str(count), *cgroups])


def mappings(count):
    return Workload([built("manymaps.c"), "100000", str(count)])


def execs(rate):
    storm = built("execstorm.c", "execstorm-static", "gcc -static -O1 -g -D_GNU_SOURCE -fno-omit-frame-pointer "
                  "-pthread -o {out} {source}")
    return Workload([storm, "100000", str(rate)])


@contextlib.contextmanager
def containers(count):
    """A thousand processes, in COUNT cgroups such as Docker makes."""
    with cgroup2_root() as root:
        parent = "%s/fathom-scale-%d" % (root, os.getpid())
        names = ["docker-%064x.scope" % (i + 1) for i in range(count)]
        os.mkdir(parent)
        try:
            for name in names:
                os.mkdir("%s/%s" % (parent, name))
            with crowd(1000, parent, *names) as load:
                yield load
        finally:
            removed(parent, names)


def removed(parent, names):
    for name in names:
        with contextlib.suppress(FileNotFoundError):
            directory(parent + "/" + name)
    directory(parent)


def directory(path):
    """Removes a cgroup, as soon as its processes are gone."""
    for _ in range(500):
        try:
            return os.rmdir(path)
        except OSError:
            time.sleep(.02)
    return os.rmdir(path)


def axes(full):
    """{axis: [(value, load, Hz, window)]}"""
    many = (10, 100, 1000, 10000)
    return {
        "processes": [(n, lambda n=n: crowd(n), HZ, "10s") for n in many],
        "processes at 19 Hz": [(n, lambda n=n: crowd(n), 19, "10s") for n in many],
        "mappings of one process": [(n, lambda n=n: mappings(n), HZ, "10s") for n in (100, 1000, 10000, 50000)],
        "containers": [(n, lambda n=n: containers(n), HZ, "10s") for n in (1, 10, 100, 500)],
        "execs a second": [(n, lambda n=n: execs(n), HZ, "10s") for n in (1, 10, 100, 1000, 10000)],
        "seconds a window": [(n, lambda: crowd(100), HZ, "%ds" % n) for n in (1, 10, 60) + ((600,) if full else ())],
        "Hz": [(n, lambda: crowd(100), n, "10s") for n in (19, 49, 97, 199, 499, 999)],
    }


def scale(show, seconds):
    cache = scratch("scale-cache")
    with crowd(10):
        figures(HZ, "10s", 1, cache)  # indexes are made
    only = os.environ.get("AXIS")
    for axis, points in axes(bool(os.environ.get("FULL"))).items():
        if only and only not in axis:
            continue
        for value, load, hz, window in points:
            with load():
                # At least one window has to be written in the time.
                long = max(seconds, 1.5 * int(window[:-1]))
                f = figures(hz, window, long, cache)
            show("scale, %s: %d" % (axis, value),
                 "%.1f us, %.1f us in BPF, %.3f%% of a CPU" % (f["own us"], f["bpf us"], f["percent"]),
                 "RssAnon %.1f, peak %.1f MB; maps %.1f MB; first sample %.0f ms, %.0f CPU ms; %d samples, %d lost" %
                 (f["anon"], f["peak"], f["maps"], f["first ms"], f["first cpu ms"], f["samples"], f["lost"]))
