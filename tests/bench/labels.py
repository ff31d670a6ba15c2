# SPDX-License-Identifier: Apache-2.0
"""What Go's pprof labels cost in the kernel: BPF's time for a sample of the same goroutine with and without them, in
turns, where they are a map (up to Go 1.23) and where they are a slice."""
import shutil
import statistics
import time

from fathom import FATHOM, Workload, built, read_profile, scratch, weight
from figures import bpf_stats, wait_for_runs
from unwind import Sampler

HZ = 997
VERSIONS = {"1.23.12": "map", "1.27.4": "slice"}
# Arguments of the workload. The first is what the others are compared with.
CASES = {"no labels": ["0"], "3 labels": ["3"], "10 labels": ["10"],
         "3 labels, new ones for each sample": ["3", "fresh"]}


def cost(program, arguments, seconds):
    """ns a sample. The program is bound to CPU 0, and only that one is sampled: nearly all ticks are the program's."""
    out = scratch("labels.pb.gz")
    with Workload([program, *arguments], wrapper=["taskset", "-c", "0"]) as w:
        sampler = Sampler("fathom", [FATHOM, "record", "-U", "-C", "0", "-F", str(HZ), "-p", str(w.pid), "-d", "600", "-o", out],
                          lambda _: weight(read_profile(out).samples))
        try:
            wait_for_runs(sampler.process, HZ, sampler.name)
            time.sleep(seconds)
            ns, _, samples = sampler.stop()
        finally:
            sampler.process.kill()
    return ns / max(samples, 1)


def program_of(version):
    return built("golabelled", "golabelled-" + version,
                 "GOTOOLCHAIN=go%s GODEBUG=goindex=0 GOFLAGS=-mod=mod CGO_ENABLED=0 go build -o {out} ." % version)


def labels(show, seconds, runs):
    if not shutil.which("go"):
        show("labels of goroutines", "go is not installed")
        return
    programs = {version: program_of(version) for version in VERSIONS}
    rows = {(version, case): [] for version in VERSIONS for case in CASES}
    with bpf_stats():
        for _ in range(runs):
            for (version, case), costs in rows.items():
                costs.append(cost(programs[version], CASES[case], seconds))
    for (version, case), costs in rows.items():
        plain = rows[version, "no labels"]
        # What else runs only adds to a turn: the lowest is nearest to what the labels alone cost.
        more = min(costs) - min(plain)
        show("BPF, Go %s (%s): %s" % (version, VERSIONS[version], case),
             "%.2f us a sample (lowest %.2f)" % (statistics.median(costs) / 1e3, min(costs) / 1e3),
             "" if costs is plain else "%+.2f us for the labels" % (more / 1e3))
