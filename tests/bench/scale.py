# SPDX-License-Identifier: Apache-2.0
"""What `fathom agent` costs as the machine grows: by number of processes, of mappings of a process, of containers, of
programs executed in a second, by the length of a window and by the rate. Each point is an agent of its own; the same
programs use half a CPU, whatever their number, so that what differs is the number."""
import contextlib
import os
import time

from agent import agent_figures
from fathom import Workload, built, cgroup2_root, scratch

HZ = 97


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
        "samples a second": [(n, lambda: crowd(100), n, "10s") for n in (19, 49, 97, 199, 499, 999)],
    }


def scale(show, seconds):
    cache = scratch("scale-cache")
    with crowd(10):
        agent_figures(HZ, 1, cache)  # indexes are made
    only = os.environ.get("AXIS")
    for axis, points in axes(bool(os.environ.get("FULL"))).items():
        if only and only not in axis:
            continue
        for value, load, hz, window in points:
            with load():
                # At least one window has to be written in the time.
                long = max(seconds, 1.5 * int(window[:-1]))
                f = agent_figures(hz, long, cache, window)
            show("scale, %s: %d" % (axis, value),
                 "%.1f us, %.1f us in BPF, %.3f%% of a CPU" % (f.own, f.bpf, f.percent),
                 "RssAnon %.1f, peak %.1f MB; maps %.1f MB; first sample %.0f ms, %.0f CPU ms; %d samples, %d lost" %
                 (f.anon, f.peak_anon, f.maps, f.first_ms, f.first_cpu_ms, f.samples, f.lost))
