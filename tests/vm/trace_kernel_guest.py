#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs in a guest: `fathom trace -k` in each way that the kernel has, at the same time as ftrace's function_graph
tracer, of a program (argv[1], tests/workloads/kerneltrees.c) whose system calls are known. The rest of argv are
the ways that must be there, in the order in which fathom tries them."""
import collections
import json
import os
import re
import select
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from ftrace_guest import TRACING, check, failures, tracing  # noqa: E402

FATHOM, FULL = os.environ["FATHOM"], bool(os.environ.get("FULL"))
PROGRAM, WAYS = sys.argv[1], sys.argv[2:]
ALL_WAYS = "fentry", "kprobe-session", "kprobe-multi", "kprobes"
MARKER = "__x64_sys_umask"
# Of each round of the program, so many; those of the last column only where the kernel has that name.
EVERY_ROUND = {"do_nanosleep": 1, "pipe_write": 1, "pipe_read": 1}
FUNCTIONS = [MARKER, *EVERY_ROUND, "vfs_open", "vfs_read", "vfs_write", "vfs_statx", "vfs_fstat", "vfs_fstatat", "vfs_getattr",
             "vfs_getattr_nosec", "ksys_read", "ksys_write", "hrtimer_nanosleep", "do_epoll_wait", "shmem_getattr"]
# Polls itself; kprobes may have room for one return of a function only (5.10).
RECURSIVE = "__ep_eventpoll_poll"
EXIT = ["do_exit", "exit_files", "cgroup_exit", "exit_signals"]
INTERRUPT = ["hrtimer_interrupt", "__hrtimer_run_queues"]
ROUNDS = 20
# 5.10 follows one call of a function to its return on one CPU: others' calls of it, fathom's too, are in the way.
ONE_RETURN = WAYS == ["kprobes"]
PATIENCE_S = 300


class Graph:
    """What ftrace's function_graph tracer sees meanwhile: {tid: [(level, function)]}, in the order of the entries."""

    def __init__(self, functions):
        self.functions = functions

    def __enter__(self):
        tracing("set_ftrace_filter", "\n".join(self.functions) + "\n")
        tracing("buffer_size_kb", "8192")
        for option, on in ("proc", 1), ("tail", 1), ("irqs", 1), ("cpu", 0), ("duration", 0), ("overhead", 0):
            tracing("options/funcgraph-%s" % option, str(on))
        tracing("current_tracer", "function_graph")
        tracing("tracing_on", "1")
        return self

    def __exit__(self, *_):
        tracing("tracing_on", "0")
        text = tracing("trace")
        tracing("current_tracer", "nop")
        tracing("set_ftrace_filter", "\n")
        self.of, level = collections.defaultdict(list), collections.Counter()
        for tid, what in re.findall(r"-(\d+) +\|(.*)$", text, re.M):
            tid, what = int(tid), what.split("|")[-1].strip()
            begins = re.match(r"(\w[\w.]*)\(\)( \{|;)", what)
            if begins:
                self.of[tid].append((level[tid], begins.group(1)))
                level[tid] += begins.group(2) == " {"
            elif what.startswith("}"):
                level[tid] -= 1


def available(functions):
    names = {line.split()[0] for line in tracing("available_filter_functions").splitlines()}
    return [f for f in functions if f in names]


def fathom(way, functions, *arguments):
    without = ",".join(ALL_WAYS[:ALL_WAYS.index(way)])
    command = [FATHOM, "trace"] + (["--test-without=" + without] if without else [])
    for name in functions:
        command += ["-k", name]
    return command + [str(a) for a in arguments]


def run(command):
    """Its output goes to a file: nobody waits in functions that are traced."""
    with open("/tmp/trace.out", "w+") as out:
        r = subprocess.run(command, text=True, stdout=out, stderr=subprocess.PIPE, timeout=PATIENCE_S)
        out.seek(0)
        r.stdout = out.read()
    if r.returncode:
        print("%s: %d %s" % (" ".join(command), r.returncode, r.stderr.strip()[-900:]))
    return r


class Trace:
    """What `fathom trace --json` has printed."""

    def __init__(self, result, what):
        check(result.returncode == 0, "%s: status %d %s" % (what, result.returncode, result.stderr.strip()[-300:]))
        lines = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
        self.program = result.stdout
        self.trees = [line for line in lines if "calls" in line]
        self.summary = ([line["summary"] for line in lines if "summary" in line] or [{}])[0]
        self.kernel = [t for t in self.trees if t.get("kernel")]

    def calls(self, tid):
        """Those of a thread in the order of their entries. Trees come when they end."""
        trees = sorted((t for t in self.kernel if t["tid"] == tid), key=lambda t: t["calls"][0]["time_ns"])
        return [c for t in trees for c in t["calls"]]

    def tid(self):
        """The thread that has called the marker."""
        return next((t["tid"] for t in self.kernel if t["calls"][0]["function"] == MARKER), 0)


def between_markers(calls, marker=MARKER):
    """From the first marker to the last one: what comes before and after is the program's start and end."""
    at = [i for i, (_, function) in enumerate(calls) if function == marker]
    return calls[at[0]:at[-1] + 1] if at else []


def differing(ours, theirs):
    for i, (a, b) in enumerate(zip(ours, theirs)):
        if a != b:
            return "call %d: %s, ftrace has %s" % (i, ours[max(0, i - 3):i + 4], theirs[max(0, i - 3):i + 4])
    return "%d calls, ftrace has %d" % (len(ours), len(theirs))


def check_against_graph(way, functions):
    """The same calls, in the same nesting and order; and as many as the program has made."""
    with Graph(functions) as graph:
        trace = Trace(run(fathom(way, functions, "--json", "--", PROGRAM, ROUNDS)), way)
    tid = trace.tid()
    calls = trace.calls(tid)
    ours = between_markers([(c["level"], c["function"]) for c in calls])
    theirs = between_markers(graph.of[tid])
    check(len(ours) > 4 * ROUNDS and ours == theirs, "%s: %s" % (way, differing(ours, theirs)))
    counts = collections.Counter(function for _, function in ours)
    wanted = dict({f: n * ROUNDS for f, n in EVERY_ROUND.items()}, **{MARKER: ROUNDS + 1})
    check(all(counts[f] == n for f, n in wanted.items()), "%s: as many as the program has made: %s" %
          (way, {f: counts[f] for f in wanted}))
    deepest = max((level for level, _ in ours), default=0)
    check(deepest >= (1 if ONE_RETURN else 2), "%s: %d levels" % (way, deepest + 1))
    if RECURSIVE in functions:
        levels = [level for level, function in ours if function == RECURSIVE]
        check(levels.count(max(levels)) >= ROUNDS and len(set(levels)) > 1, "%s: recursion: levels %s" % (way, set(levels)))
    slept = sum(c["duration_ns"] or 0 for c in calls if c["function"] == "do_nanosleep")
    check(slept >= ROUNDS * 1000000, "%s: has slept %d ns" % (way, slept))
    check_times(way, trace)
    lost = {k: n for k, n in trace.summary["not_shown"].items() if n and k not in ("returns_unmatched", "kernel_calls_missed")}
    check(not lost, "%s: nothing is lost: %s" % (way, lost))
    return trace, graph.of[tid]


def check_times(way, trace):
    """Each call is within the one that has called it."""
    wrong = []
    for tree in trace.kernel:
        open_calls = []
        for c in tree["calls"]:
            del open_calls[c["level"]:]
            end = c["time_ns"] + c["duration_ns"] if c["duration_ns"] is not None else None
            for outer, outer_end in open_calls:
                if c["time_ns"] < outer["time_ns"] or (end and outer_end and end > outer_end):
                    wrong.append((outer["function"], c["function"]))
            open_calls.append((c, end))
    check(not wrong, "%s: calls are within their callers': %s" % (way, wrong[:3]))


def check_exit(way):
    """do_exit() does not return, and goes on after the kernel has announced the thread's end."""
    functions = available(EXIT)
    with Graph(functions) as graph:
        trace = Trace(run(fathom(way, functions, "--json", "--", PROGRAM, 1, 0, "thread")), "%s: exit" % way)
    exits = [t for t in trace.kernel if t["calls"][0]["function"] == "do_exit"]
    ends = collections.Counter((t["end"], t["calls"][0]["end"]) for t in exits)
    check(ends == {("thread ended", "open"): 1, ("process ended", "open"): 1}, "%s: do_exit(): %s" % (way, dict(ends)))
    for tree in exits:
        ours = [(c["level"], c["function"]) for c in tree["calls"]]
        theirs = graph.of[tree["tid"]]
        theirs = theirs[[f for _, f in theirs].index("do_exit"):]
        check(ours == theirs and len(ours) > 1 and tree["complete"],
              "%s: %s, ftrace has %s, complete: %s" % (way, ours, theirs, tree["complete"]))
    check(all(c["end"] == "returned" for t in exits for c in t["calls"][1:]), "%s: what it calls returns" % way)


def check_interrupts(way):
    """What an interrupt calls is below the call that it came on top of, and that one stays whole."""
    functions = available(INTERRUPT + ["vfs_read"])
    inside = 0
    for _ in range(5):
        trace = Trace(run(fathom(way, functions, "--json", "--", PROGRAM, 1, 100)), "%s: interrupts" % way)
        reads = [t for t in trace.kernel if t["calls"][0]["function"] == "vfs_read"]
        check(reads and all(t["end"] == "returned" and t["complete"] for t in reads), "%s: %d reads" % (way, len(reads)))
        below = [c for t in reads for c in t["calls"][1:]]
        check(all(c.get("interrupt") and c["level"] == 1 + INTERRUPT.index(c["function"]) and c["end"] == "returned"
                  for c in below), "%s: interrupts are whole: %s" % (way, below[:2]))
        inside += len(below)
        if inside:
            break
    check(inside, "%s: %d calls in interrupts of a read" % (way, inside))


def check_callers(way):
    """Without another tracer, whose return address would be there. Together with the program's own functions."""
    command = fathom(way, ["vfs_read", "vfs_write", "ksys_read", "ksys_write", MARKER], "-u", "make_round", "--json", "--", PROGRAM, ROUNDS)
    trace = Trace(run(command), "%s: callers" % way)
    rounds = [t for t in trace.trees if not t.get("kernel")]
    check([t["calls"][0]["function"] for t in rounds] == ["make_round"] * ROUNDS, "%s: %d trees of the program" % (way, len(rounds)))
    calls = [c for c in trace.calls(trace.tid()) if c["function"] == "vfs_write"]
    callers = collections.Counter(c["caller"].split("+")[0] for c in calls)
    check(callers["ksys_write"] == len(calls) >= 2 * ROUNDS and all("+0x" in c["caller"] for c in calls), "%s: callers %s" % (way, callers))
    spans = [(t["calls"][0]["time_ns"], t["calls"][0]["time_ns"] + t["calls"][0]["duration_ns"]) for t in rounds]
    within = [sum(begin <= c["time_ns"] and c["time_ns"] + (c["duration_ns"] or 0) <= end for begin, end in spans) for c in calls]
    check(sum(within) == 2 * ROUNDS, "%s: %d calls of the kernel are within the program's" % (way, sum(within)))


def check_lost_returns(way):
    """A sleeper takes the room that the kernel has for returns of do_nanosleep(): those of the program are lost.
    What it calls next is deeper in the stack, and yet not below it."""
    functions = available(["do_nanosleep", "vfs_open", "vfs_write", "vfs_statx", "vfs_getattr", "pipe_write"])
    script = "sleep %d 2>/dev/null & until grep -q '(sleep) S' /proc/$!/stat; do :; done; exec %s %d" % (PATIENCE_S, PROGRAM, ROUNDS)
    with Graph(functions) as graph:
        trace = Trace(run(fathom(way, functions, "--json", "--", "sh", "-c", script)), "%s: lost returns" % way)
    subprocess.run(["pkill", "-x", "sleep"], check=True)
    tid = max((t["tid"] for t in trace.kernel), key=lambda tid: len(trace.calls(tid)), default=0)
    calls = trace.calls(tid)
    lost = [c["end"] for c in calls if c["function"] == "do_nanosleep"]
    check(lost.count("unknown") >= ROUNDS - 1, "%s: returns of do_nanosleep() are lost: %s" % (way, collections.Counter(lost)))
    ours, theirs = (between_markers(c, "do_nanosleep") for c in ([(c["level"], c["function"]) for c in calls], graph.of[tid]))
    check(len(ours) > 4 * ROUNDS and ours == theirs, "%s: lost returns: %s" % (way, differing(ours, theirs)))


def check_limits(way):
    functions = ["ksys_read", "vfs_read", "pipe_read", "do_nanosleep", MARKER]
    trace = Trace(run(fathom(way, functions, "--json", "--drilldown", "ksys_read", "--max-depth", 2, "--", PROGRAM, ROUNDS)), "limits")
    shapes = collections.Counter(tuple((c["level"], c["function"]) for c in t["calls"]) for t in trace.kernel)
    check(shapes[((0, "ksys_read"), (1, "vfs_read"))] >= ROUNDS and len(shapes) == 1, "--drilldown, --max-depth: %s" % dict(shapes))
    trace = Trace(run(fathom(way, functions, "--json", "--min-duration", "1ms", "--exclude", "*_read", "--", PROGRAM, ROUNDS)), "limits")
    names = {c["function"] for t in trace.kernel for c in t["calls"]}
    sleeps = sum(c["function"] == "do_nanosleep" for t in trace.kernel for c in t["calls"])
    check(sleeps == ROUNDS and not [n for n in names if n.endswith("_read")], "--min-duration, --exclude: %s, %d" % (names, sleeps))
    path = "/tmp/trace.json"
    r = run(fathom(way, functions, "-o", path, "--", PROGRAM, ROUNDS))
    with open(path) as f:
        events = [e for e in json.load(f)["traceEvents"] if e["ph"] == "X"]
    check(r.returncode == 0 and sum(e["name"] == MARKER for e in events) == ROUNDS + 1, "-o: %d events" % len(events))


def check_running(way):
    """Processes that run when the trace begins (-p), and those of a file that start later (-x)."""
    loop = subprocess.Popen(["sh", "-c", "while :; do umask 022; sleep .01; done"])
    r = run(fathom(way, [MARKER], "-d", 1, "--json", "-p", loop.pid))
    loop.kill()
    loop.wait()
    trace = Trace(r, "-p")
    check({t["pid"] for t in trace.kernel} == {loop.pid} and len(trace.kernel) > 1, "-p: %d trees" % len(trace.kernel))
    command = fathom(way, [MARKER, "do_nanosleep"], "--json", "-x", PROGRAM)
    p = subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    seen, end = 0, time.monotonic() + PATIENCE_S
    while time.monotonic() < end and not seen:
        subprocess.run([PROGRAM, "400"], stdout=subprocess.DEVNULL, check=True)
        subprocess.run(["sh", "-c", "umask 022; sleep 0"], check=True)
        ready, _, _ = select.select([p.stdout], [], [], 1)
        seen = len(os.read(p.stdout.fileno(), 1 << 16)) if ready else 0
    p.send_signal(signal.SIGINT)
    rest = p.communicate(timeout=PATIENCE_S)[0]
    names = {json.loads(line)["process"] for line in rest.splitlines() if '"calls"' in line and line.startswith('{"pid"')}
    check(seen and p.returncode == 0 and names <= {os.path.basename(PROGRAM)[:15]}, "-x: %d bytes, then %s" % (seen, names))


if not os.listdir(TRACING):
    subprocess.run(["/vm/bin/busybox", "mount", "-t", "tracefs", "none", TRACING], check=True)
chosen = available([MARKER, *EVERY_ROUND, "hrtimer_nanosleep"] if ONE_RETURN else FUNCTIONS)
check(len(chosen) >= (5 if ONE_RETURN else 12), "ftrace knows %s" % chosen)
tried = []
for number, kind in enumerate(WAYS):
    recursive = available([RECURSIVE]) if kind != "kprobes" else []
    traced, _ = check_against_graph(kind, chosen + recursive)
    tried.append(kind)
    if FULL or not number:
        check_exit(kind)
        check_interrupts(kind)
        check_callers(kind)
    if ONE_RETURN:
        check_lost_returns(kind)
    if FULL and not number:
        check_limits(kind)
        check_running(kind)
print("the same calls as ftrace's by %s" % ", ".join(tried) if not failures else "%d failed: %s" % (len(failures), failures))
sys.exit(bool(failures))
