# SPDX-License-Identifier: Apache-2.0
"""What measuring a function costs for each call: the CPU time of the program that is slowed down (traps
and BPF) and the part of it in BPF; beside bpftrace's uretprobe on the same program."""
import os
import shutil
import statistics
import subprocess
import sys

from fathom import BUILD, BUILT, TESTS, built

sys.path.insert(0, TESTS)
import latency_sites  # noqa: E402
from latency_peers import Tracer, commands, funclatency, latency_peers  # noqa: E402

CALLS = 100000
DRIVE = os.path.join(BUILD, "tests/bpf/test_latency")
BPFTRACE = ("uprobe:%(program)s:work { @begin[tid] = nsecs; } uretprobe:%(program)s:work /@begin[tid]/ "
            "{ @ns = hist(nsecs - @begin[tid]); delete(@begin[tid]); }")


def own(program, sites, *options):
    """(CPU ns of a call, ns in BPF of a hit)"""
    out = subprocess.run([DRIVE, "--drive", *options, program, sites, program, str(CALLS)], text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout.splitlines()
    counts = {f[1]: int(f[2]) for f in (line.split() for line in out) if f[0] == "count"}
    return (float(next(line for line in out if line[0].isdigit())),
            counts["bpf_ns"] / counts["hits"])


def peers(program):
    """{name: command} of those that are installed."""
    run = "%s %d" % (program, CALLS)
    found = {"bpftrace": ["bpftrace", "-c", run, "-e", BPFTRACE % {"program": program}]}
    return {name: command for name, command in found.items() if shutil.which(command[0])}


def funclatency_of(program):
    """CPU ns of a call while bcc's funclatency measures all processes."""
    with Tracer(commands(program, ["work"], None)["funclatency"]) as tracer:
        tracer.wait("Tracing")
        return peer([program, str(CALLS)])


def peer(command):
    out = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    return float(next(line for line in out.splitlines() if line[:1].isdigit()))


def latency(show, runs):
    subprocess.run(["make", "-s", "build/tests/bpf/test_latency"], check=True, cwd=os.path.dirname(TESTS))
    program = built("latencyloop.c", "latencyloop", "gcc -O2 -o {out} {source}")
    sites = os.path.join(BUILT, "latencyloop.sites")
    with open(sites, "w") as f:
        f.write("\n".join(latency_sites.sites_of(program, "work", latency_sites.functions(program)["work"], 0)))
    ours = [own(program, sites) for _ in range(runs)]
    events = [own(program, sites, "--events") for _ in range(runs)]
    theirs = {name: statistics.median(peer(command) for _ in range(runs))
              for name, command in peers(program).items()}
    if funclatency():
        theirs["funclatency"] = statistics.median(funclatency_of(program) for _ in range(runs))
    show("CPU time of a measured call of an empty function",
         "%.1f us" % (statistics.median(r[0] for r in ours) / 1e3),
         ", ".join("%s: %.1f us" % (name, ns / 1e3) for name, ns in theirs.items()))
    show("  of it in BPF, for each of two hits", "%.0f ns" % statistics.median(r[1] for r in ours))
    show("  with an event for each site", "%.1f us" % (statistics.median(r[0] for r in events) / 1e3))
    latency_peers(show)
