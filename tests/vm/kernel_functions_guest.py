#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs in a guest: `fathom latency -k` in each way that the kernel has, beside ftrace's function_graph tracer
and a program (argv[1]) that counts and times its own system calls. The rest of argv are the ways that must be
there, in the order in which fathom tries them."""
import glob
import json
import os
import re
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from pprof_read import Profile  # noqa: E402
from ftrace_guest import TRACING, check, failures, tracing  # noqa: E402

FATHOM, FULL = os.environ["FATHOM"], bool(os.environ.get("FULL"))
PROGRAM, WAYS = sys.argv[1], sys.argv[2:]
PREFIX = "__arm64_" if os.uname().machine == "aarch64" else "__x64_"
FUNCTIONS = "sys_getppid", "sys_nanosleep"
NAMES = {"fentry": "fentry/fexit", "kprobe-session": "kprobe.multi session", "kprobe-multi": "kprobe.multi",
         "kprobes": "kprobes"}
CALLS, SLEEPS = 2000, 60
PATIENCE_S = 300
# In which the program and its C library are indexed, which its first call asks for. Emulated aarch64 is slower.
INDEX_MS = 20000 if os.uname().machine == "aarch64" else 5000
# What the tracer prints of the program's name.
COMM = os.path.basename(PROGRAM)[:7]


def available():
    """The names under which ftrace knows the two functions: code may have several."""
    names = [line.split()[0] for line in tracing("available_filter_functions").splitlines()]
    return [n for f in FUNCTIONS for n in (PREFIX + f, "__do_" + f) if n in names]


def wanted(function):
    """The name that BTF has: system calls without arguments are __do_sys_…, and __x64_sys_… only an alias."""
    with open("/proc/kallsyms") as f:
        names = {line.split()[2] for line in f}
    return "__do_" + function if "__do_" + function in names and function == "sys_getppid" else PREFIX + function


class Graph:
    """What ftrace's function_graph tracer sees of the program meanwhile: {end of the name: (calls, µs)}."""

    def __enter__(self):
        tracing("set_ftrace_filter", "\n".join(available()) + "\n")
        tracing("buffer_size_kb", "4096")
        tracing("options/funcgraph-tail", "1")
        tracing("options/funcgraph-proc", "1")
        tracing("current_tracer", "function_graph")
        return self

    def __exit__(self, *_):
        text, self.of = tracing("trace"), {}
        tracing("current_tracer", "nop")
        tracing("set_ftrace_filter", "\n")
        for us, leaf, end in re.findall(COMM + r"-\d+ .*?([\d.]+) us +\|  (?:(\w+)\(\);|\} /\* (\w+))", text):
            name = (leaf or end)[(leaf or end).index("sys_"):]
            known = self.of.get(name, (0, 0))
            self.of[name] = (known[0] + 1, known[1] + float(us))


def latency(way, *arguments, **how):
    without = ",".join(name for name in list(NAMES)[:list(NAMES).index(way)])
    command = [FATHOM, "latency"] + (["--test-without=" + without] if without else []) + ["--json"]
    for name in FUNCTIONS:
        command += ["-k", wanted(name)]
    return subprocess.Popen(command + list(arguments), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            **how)


def result(process, what):
    out, errors = process.communicate(timeout=PATIENCE_S)
    check(process.returncode == 0, "%s: status %d %s" % (what, process.returncode, errors.strip()[-600:]))
    return out


def truth_of(out):
    return {name: tuple(map(int, rest)) for name, *rest in re.findall(r"^(sys_\S+) (\d+) (\d+) (\d+)$", out, re.M)}


def report_of(out):
    return json.loads(out.strip().splitlines()[-1])


def functions_of(report):
    return {f["linkage_name"].replace(PREFIX, "").replace("__do_", ""): f for f in report["functions"]}


def compare(report, truth, ftrace, way):
    check(report["kernel_functions_by"] == NAMES[way], "by %s" % report["kernel_functions_by"])
    functions = functions_of(report)
    for name, (calls, least, most) in truth.items():
        f, (hits, us) = functions[name], ftrace.get(name, (0, 0))
        what = "%s: %s" % (way, name)
        check(f["binary"] == "kernel", "%s is in %s" % (what, f["binary"]))
        # ftrace prints a thread's last name, so it has a call that fathom's child made before it executed the program.
        check(f["calls"] == calls and 0 <= hits - calls <= 1,
              "%s: %d calls of %d, ftrace counts %d" % (what, f["calls"], calls, hits))
        check(least <= f["total_ns"] <= most, "%s: %d ns are between %d and %d" % (what, f["total_ns"], least, most))
        # One of the two measures the other one's cost as well. A call that sleeps takes far longer than that.
        check(not least or abs(f["total_ns"] / 1000 - us) < .25 * us, "%s: %.0f us, ftrace has %.0f" %
              (what, f["total_ns"] / 1000, us))
    lost = {name: count for name, count in report["not_counted"].items() if count}
    check(not lost, "%s: nothing is lost: %s" % (way, lost))


def check_command(way):
    with Graph() as graph:
        out = result(latency(way, "--", PROGRAM, str(CALLS), str(SLEEPS)), way)
    compare(report_of(out), truth_of(out), graph.of, way)


def attached(way):
    """How many functions are probed at present, as the kernel's own files list it."""
    if way == "kprobes":
        with open("/sys/kernel/debug/kprobes/list") as f:
            lines = f.read()
    else:
        lines = tracing("enabled_functions")
    return sum(any(n in line for n in available()) for line in lines.splitlines())


def wait_for(holds):
    end = time.monotonic() + PATIENCE_S
    while not holds() and time.monotonic() < end:
        time.sleep(.2)
    return holds()


def check_all_processes(way):
    """Without a filter, and what is left after SIGINT."""
    process = latency(way)
    check(wait_for(lambda: attached(way) >= len(FUNCTIONS)), "%s: is attached for all processes" % way)
    truth = truth_of(subprocess.run([PROGRAM, str(CALLS), "0"], text=True, stdout=subprocess.PIPE, check=True).stdout)
    process.send_signal(signal.SIGINT)
    report = report_of(result(process, way))
    calls = functions_of(report)["sys_getppid"]["calls"]
    check(calls >= truth["sys_getppid"][0], "%s: %d calls of all processes" % (way, calls))
    check(wait_for(lambda: attached(way) == 0), "%s: nothing stays attached" % way)


def check_kill(way):
    process = latency(way)
    check(wait_for(lambda: attached(way) >= len(FUNCTIONS)), "%s: is attached" % way)
    process.kill()
    process.communicate()
    check(wait_for(lambda: attached(way) == 0), "%s: nothing stays attached after SIGKILL" % way)


def run(*arguments, wrapper=()):
    r = subprocess.run([*wrapper, FATHOM, "latency", *map(str, arguments)], text=True, stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, timeout=PATIENCE_S)
    print("%s: %d %s" % (" ".join(map(str, arguments)), r.returncode, r.stderr.strip()[-300:]))
    return r


# Of the program, from the system call to the root.
CALLERS = {"sys_getppid": ["inner", "middle", "asks", "main"], "sys_nanosleep": ["inner", "middle", "sleeps_for", "main"]}
PROFILE = "/tmp/kernel.pb.gz"


def names_of(sample):
    return [f["func"] for f in sample["frames"]]


def short(name):
    """A system call's code has several names."""
    return re.sub("^__(x64|ia32|arm64|do|se)_(?=sys_)", "", name)


def sums(samples):
    return sum(s["values"][0] for s in samples), sum(s["values"][1] for s in samples)


def in_the_kernel(sample):
    """The names of the frames in the kernel, and below it."""
    of = [f["mapping"] or "" for f in sample["frames"]]
    kernel = sum(1 for file in of if file.startswith("[") and file != "[vdso]")
    return names_of(sample)[:kernel], names_of(sample)[kernel:]


def check_stacks(way):
    """-o: each call has the kernel's stack from the function to the system call's entry, and the program's own."""
    process = latency(way, "-o", PROFILE, "--", PROGRAM, str(CALLS), str(SLEEPS), "0", str(INDEX_MS))
    out, errors = process.communicate(timeout=PATIENCE_S)
    check(process.returncode == 0, "%s -o: status %d %s" % (way, process.returncode, errors.strip()[-600:]))
    report, profile = report_of(out), Profile(PROFILE)
    check(report["kernel_functions_by"] == NAMES[way], "-o by %s" % report["kernel_functions_by"])
    check("not taken" not in errors and "without their callers" not in errors, "%s: what -o says: %s" % (way, errors.strip()))
    for name, f in functions_of(report).items():
        what = "%s -o: %s" % (way, name)
        samples = [s for s in profile.samples if short(names_of(s)[0]) == name]
        calls = CALLS if name == "sys_getppid" else SLEEPS
        check(f["calls"] == calls and sums(samples) == (calls, f["total_ns"]),
              "%s: %d calls of %d, and their time: %s of %d ns" % (what, f["calls"], calls, sums(samples), f["total_ns"]))
        # BPF's own frames are not shown, and the walk arrives at the entry from user mode.
        kernel, user = in_the_kernel(samples[0])
        check(not [n for n in kernel if "bpf" in n or "fathom" in n or "trampoline" in n or "ftrace" in n],
              "%s: nothing of the probe is in %s" % (what, kernel))
        roots = {in_the_kernel(s)[0][-1] for s in samples}
        check(all(re.match("entry_SYSCALL_64|do_syscall_64|el0t?_64_sync|el0_sync|el0t?_svc", r) for r in roots),
              "%s: the kernel's stack is whole: %s" % (what, roots))
        whole = [s for s in samples if [n for n in in_the_kernel(s)[1] if n in CALLERS[name]] == CALLERS[name]]
        # Until the program's tables are loaded, stacks may be cut: that of the first call.
        check(sums(whole)[0] >= .99 * calls, "%s: %d of %d calls through %s: %s" %
              (what, sums(whole)[0], calls, CALLERS[name], user))
        check({s["labels"].get("comm") for s in samples} == {os.path.basename(PROGRAM)[:15]}, "%s: by whom" % what)
    check(sums(profile.samples)[0] == CALLS + SLEEPS, "%s -o: nothing else is in the profile" % way)


def interrupt_function():
    with open("/proc/kallsyms") as f:
        names = {line.split()[2] for line in f}
    return next(n for n in ("update_process_times", "tick_sched_handle", "hrtimer_interrupt") if n in names)


def check_interrupts(way):
    """What an interrupt calls has no user stack, though it interrupts user code; and idle tasks have stacks, too."""
    function = interrupt_function()
    without = ",".join(name for name in list(NAMES)[:list(NAMES).index(way)])
    arguments = ["--json", "-k", function, "-o", PROFILE] + (["--test-without=" + without] if without else [])
    for target in [["--", PROGRAM, "0", "0", "1500"]] + [["-d", "1"]] * (FULL or way == WAYS[0]):
        r = run(*arguments, *target)
        report, profile = report_of(r.stdout), Profile(PROFILE)
        calls = sum(f["calls"] for f in report["functions"])
        check(calls > 10 and sums(profile.samples)[0] == calls, "%s: %d calls of %s, with stacks: %s; %s" %
              (way, calls, function, sums(profile.samples), r.stderr.strip()[-300:]))
        check(all(names_of(s)[0] == function for s in profile.samples), "%s: they begin with %s" % (way, function))
        users = {tuple(in_the_kernel(s)[1]) for s in profile.samples}
        # The types of Debian's 5.10 have no per-CPU variables: interrupts of user code count as its own calls.
        check(users == {()} or os.uname().release.startswith("5.10"), "%s: of interrupts, no user stacks: %s" % (way, users))


def check_both():
    """-u and -k in one profile."""
    r = run("-u", "asks", "-k", wanted("sys_getppid"), "--json", "-o", PROFILE, "--", PROGRAM, 300, 0)
    leaves = {}
    for s in Profile(PROFILE).samples:
        leaf = short(names_of(s)[0])
        leaves[leaf] = leaves.get(leaf, 0) + s["values"][0]
    check(r.returncode == 0 and leaves == {"asks": 300, "sys_getppid": 300}, "user and kernel functions: %s %s" %
          (leaves, r.stderr.strip()[-300:]))


def check_patterns():
    """Patterns that name very many functions: measured, or refused with the limit; and functions of modules."""
    r = run("-k", "*", "-d", "1")
    check(r.returncode == 1 and re.search(r"name \d+ functions, 10000 are possible at once", r.stderr), "-k '*'")
    r = run("-k", "tcp_*", "-d", "1", "--json")
    if WAYS[-2:] == ["kprobe-multi", "kprobes"]:
        report = report_of(r.stdout)
        check(r.returncode == 0 and report["kernel_functions_by"].startswith("kprobe.multi"), "-k 'tcp_*' is measured")
    elif r.returncode:
        check("one by one" in r.stderr and "at most 500 are possible" in r.stderr, "-k 'tcp_*' is too many one by one")
    else:
        check(report_of(r.stdout)["kernel_functions_by"] == "kprobes", "-k 'tcp_*' is measured one by one")
    r = run("-k", "p9_client_*", "--json", "--", "sh", "-c", "cat %s | head -c 1000000 >/dev/null" % FATHOM)
    functions = report_of(r.stdout)["functions"] if r.returncode == 0 else []
    check(functions and all(f["binary"] == "[9pnet]" for f in functions) and sum(f["calls"] for f in functions),
          "functions of a module: %s" % [(f["name"], f["calls"]) for f in functions[:3]])


def check_output():
    path, name = "/tmp/latency.metrics", PREFIX + "sys_getppid"
    r = run("-k", name, "--openmetrics", path, "--", PROGRAM, 100, 0)
    with open(path) as f:
        counts = re.findall(r'^fathom_function_latency_seconds_count\{(.*)\} (\d+)$', f.read(), re.M)
    check(r.returncode == 0 and [c for _, c in counts] == ["100"], "OpenMetrics: %s" % counts)
    check(all('binary="kernel"' in labels for labels, _ in counts), "of the kernel")


def check_end():
    """A process has calls after the kernel has announced its end."""
    for i in range(5 if FULL else 2):
        r = run("-k", "cgroup_exit", "--json", "--", PROGRAM, 10, 0)
        calls = [f["calls"] for f in report_of(r.stdout)["functions"]]
        check(r.returncode == 0 and calls == [1], "at the end of a process: calls %s" % calls)


def check_selection():
    """By cgroup, and in a pid namespace, where pids are others."""
    name, root = PREFIX + "sys_getppid", "/tmp/cgroups"
    os.makedirs(root, exist_ok=True)
    subprocess.run(["/vm/bin/busybox", "mount", "-t", "cgroup2", "none", root], check=True)
    os.makedirs(root + "/measured", exist_ok=True)
    shell = "echo $$ >%s/measured/cgroup.procs; exec %s 70 0" % (root, PROGRAM)
    r = run("-k", name, "--by", "cgroup", "--json", "--", "sh", "-c", shell)
    keys = {k.get("name"): k["calls"] for f in report_of(r.stdout)["functions"] for k in f["keys"]}
    check(keys.get("/measured") == 70, "by cgroup: %s" % keys)
    r = run("-k", name, "--by", "pid", "--json", "--", PROGRAM, 80, 0,
            wrapper=("unshare", "--pid", "--fork", "--mount-proc"))
    keys = {k.get("name"): (k["pid"], k["calls"]) for f in report_of(r.stdout)["functions"] for k in f["keys"]}
    pid, calls = keys.get(os.path.basename(PROGRAM)[:15], (0, 0))
    check(calls == 80 and 1 < pid < 50, "in a pid namespace: %s" % keys)


for place, kind in ((TRACING, "tracefs"), ("/sys/kernel/debug", "debugfs")):
    if not os.listdir(place):
        subprocess.run(["/vm/bin/busybox", "mount", "-t", kind, "none", place], check=True)
check(len(available()) >= 2, "ftrace knows %s" % available())
for way in WAYS:
    check_command(way)
    # The kernel lets go of all links in one way, and of breakpoints in another.
    if FULL or way in (WAYS[0], WAYS[-1]):
        check_all_processes(way)
        check_kill(way)
    check_stacks(way)
    check_interrupts(way)
check_both()
check_patterns()
check_output()
check_end()
check_selection()
print("%d calls exact in %s" % (CALLS + SLEEPS, ", ".join(NAMES[w] for w in WAYS)) if not failures
      else "%d failed: %s" % (len(failures), failures))
sys.exit(bool(failures))
