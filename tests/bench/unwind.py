# SPDX-License-Identifier: Apache-2.0
"""What unwinding by tables costs in the kernel, beside bpf_get_stackid (bpftrace) at the same time on
the same programs, and how many stacks of each kind of program are whole."""
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from fathom import (FATHOM, LOOKUPS, SOURCES, SCRATCH, Workload, built, environment, fathom, read_profile,
                    scratch, weight)
import perf_chains
from figures import bpf_stats, programs_of, wait_for_runs

HZ = 499
DEEP = 120  # below the 127 frames that the kernel's own walk allows
WITH_FRAME_POINTERS = "gcc -O2 -g -fno-omit-frame-pointer -o {out} {source}"


class Sampler:
    """One that takes only the stacks of some processes; what the others' ticks cost is told apart."""

    def __init__(self, name, argv, wanted):
        self.name, self.wanted = name, wanted
        self.out = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(argv, env=environment(), stdin=subprocess.DEVNULL,
                                        stdout=self.out, stderr=subprocess.DEVNULL)

    def stop(self):
        """(ns, runs, samples that were wanted)."""
        ns, runs = programs_of(self.process.pid)
        self.process.send_signal(signal.SIGINT)
        self.process.wait(60)
        self.out.seek(0)
        with self.out:
            return ns, runs, self.wanted(self.out.read())


def samplers(pids, how):
    ours = scratch("cost.pb.gz")
    made = [Sampler("ours", [FATHOM, "record", "-U", "-F", str(HZ), *LOOKUPS[how], "-p",
                             ",".join(map(str, pids)), "-d", "600", "-o", ours],
                    lambda _: weight(read_profile(ours).samples))]
    if shutil.which("bpftrace"):
        condition = " || ".join("pid == %d" % pid for pid in pids)
        # Stacks are taken but not printed: their symbols would take a minute.
        program = "profile:hz:%d /%s/ { @[ustack(perf, 127)] = count(); @n = count(); } END { clear(@); }"
        made.append(Sampler("bpf_get_stackid", ["bpftrace", "-e", program % (HZ, condition)],
                            lambda text: int(re.search(r"^@n: (\d+)", text, re.M).group(1))))
    return made


def measured(pids, seconds, how):
    running = samplers(pids, how)
    try:
        for sampler in running:
            wait_for_runs(sampler.process, HZ, sampler.name)
        time.sleep(seconds)
        return {sampler.name: sampler.stop() for sampler in running}
    finally:
        for sampler in running:
            sampler.process.kill()


def deep(depth):
    return [built("depth.c", "depth-fp", WITH_FRAME_POINTERS), "600", str(depth)]


def cost(argv, seconds, how, idle_ns):
    """ns a sample of each sampler, of two such programs."""
    with Workload(argv) as one, Workload(argv) as two:
        figures = measured([one.pid, two.pid], seconds, how)
    return {name: (ns - idle_ns[name] * max(runs - wanted, 0)) / max(wanted, 1)
            for name, (ns, runs, wanted) in figures.items()}


def costs(show, seconds, runs):
    with bpf_stats():
        for how in ("mappings", "ranges"):
            # What a tick costs that is not wanted: those of a process that sleeps.
            idle_ns = {name: ns / ticks
                       for name, (ns, ticks, _) in measured([os.getpid()], 2, how).items()}
            few = [cost(deep(1), seconds, how, idle_ns) for _ in range(runs)]
            many = [cost(deep(DEEP), seconds, how, idle_ns) for _ in range(runs)]
            for name in many[0]:
                low = statistics.median(row[name] for row in few)
                high = statistics.median(row[name] for row in many)
                show("BPF, user stack: by %s" % how if name == "ours" else "  " + name,
                     "%.0f ns a frame, hot" % ((high - low) / (DEEP - 1)),
                     "%.1f us a sample of 6 frames, %.1f us of %d" %
                     (low / 1e3, high / 1e3, DEEP + 5))
            # 250 frames with a page of stack and a page of rules each.
            worst = [cost([built("pages.c", "pages-fp", WITH_FRAME_POINTERS), "600"], seconds, how, idle_ns)
                     for _ in range(runs)]
            for name in worst[0]:
                show("BPF, worst stack: by %s" % how if name == "ours" else "  " + name,
                     "%.1f us a sample" % (statistics.median(row[name] for row in worst) / 1e3))


def whole_stacks(show, seconds):
    programs = perf_chains.loads()
    programs["200 deep"] = [built("depth.c", "depth-nofp", "gcc -O2 -g -fomit-frame-pointer "
                                  "-o {out} {source}"), "600", "200"]
    if shutil.which("javac"):
        classes = scratch("classes")
        subprocess.run(["javac", "-d", classes, os.path.join(SOURCES, "Spin.java")], check=True)
        programs["java"] = ["java", "-XX:+PreserveFramePointer", "-cp", classes, "Spin", "600"]
    for name, argv in programs.items():
        with Workload(argv, cwd=SCRATCH) as w:
            r = fathom("record", "-F", "199", "-p", w.pid, "-d", seconds, "-o", scratch("whole.pb.gz"))
        told = re.search(r"([\d.]+)% of user stacks complete", r.stderr)
        samples = re.search(r"samples: +(\d+)", r.stderr)
        show("whole stacks: " + name, "%s%%" % (told.group(1) if told else "none"),
             "%s samples" % (samples.group(1) if samples else "no"))


def perf_share(show, seconds):
    if not shutil.which("perf"):
        return
    for name, argv in perf_chains.loads().items():
        counts = perf_chains.compare(name, argv, 199, seconds).counts
        show("perf --call-graph dwarf's chains in ours: " + name, perf_chains.text(counts))


def unwind(show, seconds, runs):
    costs(show, seconds, runs)
    whole_stacks(show, seconds)
    perf_share(show, seconds)
