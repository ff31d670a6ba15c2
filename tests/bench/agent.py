# SPDX-License-Identifier: Apache-2.0
"""`fathom agent` beside `perf record -g`, bpftrace and bcc's profile: the same load, the same time."""
import collections
import contextlib
import glob
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
import urllib.request

from fathom import FATHOM, environment, read_profile, scratch, weight
from figures import bpf_stats, medians, programs_of, wait_for_runs

WARM_SECONDS = 35  # three windows, and the indexes of what runs


def run_seconds(pid):
    """CPU time of all threads of a process, to the nanosecond."""
    total = 0
    for path in glob.glob("/proc/%d/task/*/schedstat" % pid):
        try:
            with open(path) as f:
                total += int(f.read().split()[0])
        except OSError:
            pass
    return total / 1e9


def memory_mb(pid, key):
    with open("/proc/%d/status" % pid) as f:
        return int(re.search(key + r":\s+(\d+)", f.read()).group(1)) / 1024


class Agent:
    def __init__(self, hz, cache, window="10s"):
        self.store = scratch("store-%d-%d" % (hz, time.monotonic_ns()))
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.address = "127.0.0.1:%d" % s.getsockname()[1]
        self.begin = time.monotonic()
        self.process = subprocess.Popen(
            [FATHOM, "agent", "-F", str(hz), "--profiling-duration=" + window,
             "--cpu-budget=0", "--local-store-directory=" + self.store,
             "--http-address=" + self.address],
            env=environment(cache), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.pid = self.process.pid

    def get(self, path):
        with urllib.request.urlopen("http://" + self.address + path, timeout=10) as answer:
            return answer.read().decode()

    def metrics(self):
        return self.get("/metrics")

    def counter(self, name):
        return sum(float(line.split()[-1]) for line in self.metrics().split("\n")
                   if re.match(re.escape(name) + r"([{\s]|$)", line) or line.startswith(name + " "))

    def labelled(self, start):
        return sum(float(line.split()[-1]) for line in self.metrics().split("\n")
                   if line.startswith(start))

    def seconds_until(self, what, is_true):
        """(wall s, CPU s) of the agent from its start until IS_TRUE, which is asked every 5 ms."""
        while time.monotonic() - self.begin < 30:
            with contextlib.suppress(OSError):
                if is_true():
                    return time.monotonic() - self.begin, run_seconds(self.pid)
            time.sleep(0.005)
        sys.exit("the agent %s in 30 s" % what)

    def first_sample_seconds(self):
        return self.seconds_until("took no sample", lambda: self.counter("fathom_samples_total"))

    def ready_seconds(self):
        return self.seconds_until("was not ready", lambda: self.get("/ready") is not None)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)

    def stored_samples(self):
        return sum(weight(read_profile(path).samples)
                   for path in glob.glob(self.store + "/*/*.pb.gz"))


class Peak(threading.Thread):
    """The largest RssAnon of a process, looked at four times a second."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.mb, self.ended = pid, 0, threading.Event()

    def run(self):
        while not self.ended.wait(.25):
            with contextlib.suppress(OSError, AttributeError):
                self.mb = max(self.mb, memory_mb(self.pid, "RssAnon"))


COUNTED = {"samples": "fathom_samples_total", "bpf": 'fathom_overhead_cpu_seconds_total{part="bpf"}',
           "lost": "fathom_samples_lost_total"}
# us and MB; own and bpf for each sample, percent of a CPU, first: of the program's start to its first sample.
Figures = collections.namedtuple("Figures", "own bpf percent anon peak_anon rss peak_rss maps first_ms first_cpu_ms "
                                 "samples lost")


def agent_figures(hz, seconds, cache, window="10s"):
    """Those of an agent of its own, in SECONDS after it has warmed up."""
    agent = Agent(hz, cache, window)
    peak = Peak(agent.pid)
    peak.start()
    try:
        first, first_cpu = agent.first_sample_seconds()
        time.sleep(WARM_SECONDS)
        before, cpu = {k: agent.labelled(name) for k, name in COUNTED.items()}, run_seconds(agent.pid)
        time.sleep(seconds)
        cpu = run_seconds(agent.pid) - cpu
        moved = {k: agent.labelled(name) - before[k] for k, name in COUNTED.items()}
        taken = max(moved["samples"], 1)
        anon = memory_mb(agent.pid, "RssAnon")
        return Figures(1e6 * cpu / taken, 1e6 * moved["bpf"] / taken, 100 * cpu / seconds, anon, max(peak.mb, anon),
                       memory_mb(agent.pid, "VmRSS"), memory_mb(agent.pid, "VmHWM"),
                       agent.counter("fathom_bpf_map_memory_bytes") / 1e6, 1e3 * first, 1e3 * first_cpu, taken,
                       moved["lost"])
    finally:
        peak.ended.set()
        agent.stop()
        shutil.rmtree(agent.store, ignore_errors=True)


def peer_run(argv, wait_for_start, env=None):
    """(CPU s after its start, peak RSS MB, output) of a program that ends by itself."""
    p = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env)
    with p.stdout:
        text = wait_for_start(p)
        started = run_seconds(p.pid)
        text += p.stdout.read().decode(errors="replace")
    _, status, usage = os.wait4(p.pid, 0)
    p.returncode = os.waitstatus_to_exitcode(status)
    if p.returncode:
        raise subprocess.CalledProcessError(p.returncode, argv, text)
    return usage.ru_utime + usage.ru_stime - started, usage.ru_maxrss / 1024, text


def perf_started(_perf):
    """By then perf samples, and has not read its rings: it waits until they are rather full, for seconds."""
    time.sleep(1.5)
    return ""


def bcc_started(bcc):
    """Its first line says that it samples."""
    return bcc.stdout.readline().decode(errors="replace")


def run_of_perf(hz, seconds):
    """CPU s, samples, peak MB"""
    out = scratch("perf-%d.data" % hz)
    cpu, rss, _ = peer_run(["perf", "record", "-B", "-a", "-g", "-F", str(hz), "-e", "cpu-clock",
                            "-o", out, "--", "sleep", str(seconds)], perf_started)
    text = subprocess.run(["perf", "script", "-F", "time", "-i", out], capture_output=True,
                          text=True, check=True).stdout
    return cpu, text.count(":"), rss


def bcc_sources():
    """Kernel headers as bcc wants them, in one tree: this kernel's, else Debian's own package (the
    program needs nothing that differs by version)."""
    if os.path.isdir("/lib/modules/%s/build" % os.uname().release):
        return None
    common = sorted(glob.glob("/usr/src/linux-headers-*-common"))
    if not common:
        return ""
    tree = scratch("kernel-headers")
    if not os.path.isdir(tree):
        os.mkdir(tree)
        arch = [d for d in glob.glob(common[-1].replace("-common", "-*")) if d != common[-1]]
        for source in [common[-1]] + arch[:1]:
            subprocess.run(["cp", "-rsf", source + "/.", tree], check=True)
    return tree


def run_of_bcc(hz, seconds):
    """CPU s, samples, peak MB"""
    env = dict(os.environ, PYTHONUNBUFFERED="1")
    sources = bcc_sources()
    if sources:
        env["BCC_KERNEL_SOURCE"] = sources
    cpu, rss, text = peer_run(["profile-bpfcc", "-f", "-F", str(hz), str(seconds)], bcc_started, env)
    samples = sum(int(n) for n in re.findall(r" (\d+)$", text, re.M))
    return cpu, samples, rss


def churn(cache, storm, hz=97, seconds=12):
    """Samples of processes that live a millisecond or two, as a share of the CPU time that their
    parent's wait() tells of."""
    agent = Agent(hz, cache, "2s")
    agent.first_sample_seconds()
    with subprocess.Popen([storm, str(seconds)], stdout=subprocess.PIPE, text=True) as load:
        children = int(re.search(r"children (\d+)", load.stdout.read()).group(1))
        _, _, usage = os.wait4(load.pid, 0)
        load.returncode = 0
    lost = agent.counter("fathom_samples_lost_total")
    agent.stop()
    samples = [s for path in glob.glob(agent.store + "/*/*.pb.gz")
               for s in read_profile(path).samples
               if "forkstorm" in s["labels"].get("fathom_group", "")]
    taken = weight(samples)
    return (100 * taken / ((usage.ru_utime + usage.ru_stime) * hz), lost, children / seconds)


def beside(show, hz, us, name, program, run_of, seconds, runs):
    """A peer's CPU time for a sample, without what its start costs."""
    if not shutil.which(program):
        show("  " + name, "not installed")
        return
    try:
        cpu, samples, rss = medians([run_of(hz, seconds) for _ in range(runs)])
    except subprocess.CalledProcessError as e:
        show("  " + name, "died: status %d" % e.returncode)
        return
    peer_us = 1e6 * cpu / max(samples, 1)
    show("  " + name, "%.1f us, peak %.1f MB" % (peer_us, rss), "ratio %.2f" % (us / peer_us))


def bpftrace_us(hz, seconds):
    """CPU us that a sample of both stacks, by frame pointers, takes in the kernel."""
    program = "profile:hz:%d { @[pid, tid, comm, kstack(perf, 127), ustack(perf, 127)] = count(); } END { clear(@); }"
    with bpf_stats():
        bpftrace = subprocess.Popen(["bpftrace", "-e", program % hz], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_for_runs(bpftrace, hz, "bpftrace")
            before = programs_of(bpftrace.pid)
            time.sleep(seconds)
            after = programs_of(bpftrace.pid)
        finally:
            bpftrace.kill()  # it would print for a minute
            bpftrace.wait()
    return (after[0] - before[0]) / 1e3 / max(after[1] - before[1], 1)


def bpf_beside(show, hz, us, seconds, runs):
    """What a sample costs in bpftrace's program, which walks no stack without frame pointers."""
    name = "  bpftrace, both stacks by frame pointers"
    if not shutil.which("bpftrace"):
        show(name, "not installed")
        return
    peer_us = statistics.median(bpftrace_us(hz, seconds) for _ in range(runs))
    show(name, "%.1f us" % peer_us, "ratio %.2f" % (us / peer_us))


def ready(cache):
    """(wall ms, CPU ms) of an agent from its start until it samples."""
    agent = Agent(19, cache)
    try:
        return [1e3 * seconds for seconds in agent.ready_seconds()]
    finally:
        agent.stop()
        shutil.rmtree(agent.store, ignore_errors=True)


def start(show, runs):
    cache = scratch("start-cache")
    rows = [ready(cache) for _ in range(5 * runs)]
    show("start of the program until it samples, on a quiet machine",
         "%.0f ms, %.0f CPU ms" % tuple(medians(rows)), "%d starts" % len(rows))


def agent(show, seconds, runs, storm):
    cache = scratch("agent-cache")
    for hz in (97, 19):
        rows = [agent_figures(hz, seconds, cache) for _ in range(runs + 1)][1:]  # indexes are made
        f = Figures(*medians(rows))
        show("agent at %d Hz: CPU per sample, names and pprof" % hz, "%.1f us (%.2f%% of a CPU)" % (f.own, f.percent))
        show("  RssAnon, RSS, peak of RSS; BPF maps", "%.1f, %.1f, %.1f MB; %.1f MB" % (f.anon, f.rss, f.peak_rss, f.maps))
        show("  BPF per sample, both stacks and output", "%.1f us" % f.bpf)
        bpf_beside(show, hz, f.bpf, seconds, runs)
        show("  start of the program to its first sample, beside the load", "%.0f ms, %.0f CPU ms" % (f.first_ms, f.first_cpu_ms))
        beside(show, hz, f.own, "perf record -g (no symbols, no pprof)", "perf", run_of_perf,
               seconds, runs)
        beside(show, hz, f.own, "bcc profile (symbols at the end)", "profile-bpfcc", run_of_bcc,
               seconds, runs)
    show("delivered of processes that live 2 ms",
         "%.1f%%, %d lost, %.0f processes a second" % churn(cache, storm))
