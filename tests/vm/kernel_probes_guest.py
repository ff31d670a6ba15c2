#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs in a guest: the agent's probes on kernel functions. Calls on /metrics are those that programs count;
only those of selected processes; probes on user functions beside them; a reload adds and removes a probe while
another one goes on; what is named and not there; the limit of cost; nothing stays attached."""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../scenario"))
from agent import *  # noqa: E402

TRACING = "/sys/kernel/tracing"
PARENT, SLEEP = "__x64_sys_getppid", "__x64_sys_clock_nanosleep"
SYSTEM = "\n  - {name: system, kernel: true, processes: [executable=%s], functions: [%s, %s], labels: {team: a}}"
USER = "\n  - {name: user, processes: [executable=%s], functions: [quick]}"
MORE = "\n  - {name: more, kernel: true, processes: [executable=%s], functions: [%s], by: pid}"
WRONG = "\n  - {name: wrong, kernel: true, functions: [__x64_sys_getpppid]}"


class Program(Workload):
    """calls.c, which makes the calls that it is told to."""

    def __init__(self, path):
        read, self.write = os.pipe()
        self.process = subprocess.Popen([path], stdin=read, stdout=subprocess.PIPE, start_new_session=True)
        os.close(read)
        self.pid = self.process.pid
        if self.process.stdout.readline() != b"ready\n":
            stop("%s is not ready" % path)

    def __exit__(self, *rest):
        os.close(self.write)
        super().__exit__(*rest)

    def call(self, name, count):
        """Returns all calls of the function so far, and the time they took."""
        os.write(self.write, b"%s %d\n" % (name.encode(), count))
        _, calls, ns = self.process.stdout.readline().split()
        return int(calls), int(ns)


class ProbingAgent(Agent):
    def __init__(self, probes, *options):
        self.path = scratch("probes.yaml")
        self.write(probes)
        super().__init__("--config-path=" + self.path, "-F", "99", *options)

    def write(self, probes):
        with open(self.path, "w") as f:
            f.write("probes:" + probes + "\n" if probes else "")

    def reload(self, probes):
        self.write(probes)
        check(self.ask("/-/reload", method="POST").status == 200, "a reload")

    def probe(self, name):
        return next((p for p in self.status()["probes"] if p["name"] == name), None)

    def wait_measured(self, name, functions, program, busy=False):
        """The program runs, in functions that no probe names: a guest is slow, and if the records of its start
        were lost, its samples tell."""
        def measured():
            if not busy:
                program.call("other", 20000)
            p = self.probe(name)
            return p and p["state"] == "measured" and p["functions"] == functions and p["processes"] == 1
        wait_until(measured, "%s measures %d functions of one process" % (name, functions), 120)

    def figures(self, probe, function):
        """Calls, and the time that they took in ns."""
        metrics, sums = self.metrics(), [0, 0]
        for key, value in metrics.items():
            if 'probe="%s"' % probe not in key or 'function="%s"' % function not in key:
                continue
            if key.startswith("fathom_function_latency_seconds_count{"):
                sums[0] += int(value)
            if key.startswith("fathom_function_latency_seconds_sum{"):
                sums[1] += value * 1e9
        return sums

    def wait_exact(self, wanted, probe, function):
        wait_until(lambda: self.figures(probe, function)[0] >= wanted, "%s: %d calls of %s, it has %s" % (
            probe, wanted, function, self.figures(probe, function)), 120)
        self.wait_windows(2)
        calls = self.figures(probe, function)[0]
        check(calls == wanted, "%s: %d calls of %s, made were %d" % (probe, calls, function, wanted))

    def lost(self):
        name = "fathom_function_calls_not_counted_total"
        return {k[len(name):]: v for k, v in self.metrics().items() if k.startswith(name) and v}


def attached():
    """Whether the kernel runs anything at the system calls, by its own lists."""
    text = ""
    for path in (TRACING + "/enabled_functions", "/sys/kernel/debug/kprobes/list"):
        with open(path) as f:
            text += f.read()
    return any(name in text for name in (PARENT, "__do_sys_getppid", SLEEP))


def check_counts(agent, mine, other):
    agent.wait_measured("system", 2, mine)
    agent.wait_measured("user", 1, mine)
    other.call("parent", 500)
    parents, parents_ns = mine.call("parent", 2000)
    sleeps, sleeps_ns = mine.call("slow", 40)
    quick, _ = mine.call("quick", 300)
    agent.wait_exact(parents, "system", PARENT)
    agent.wait_exact(sleeps, "system", SLEEP)
    agent.wait_exact(quick, "user", "quick")
    check(agent.figures("system", PARENT)[1] <= parents_ns, "no longer than their caller saw")
    check(sleeps * 2000000 <= agent.figures("system", SLEEP)[1] <= sleeps_ns, "sleeps take their time")
    check(not agent.lost(), "no call is lost: %s" % agent.lost())
    text = agent.ask("/metrics").body.decode()
    line = next(l for l in text.splitlines() if PARENT in l and "_count{" in l)
    for wanted in ('binary="kernel"', 'probe="system"', 'team="a"', 'executable="mine"'):
        check(wanted in line, "a label %s: %s" % (wanted, line))
    names = {f["function"] for f in json.loads(agent.ask("/api/latency").body)["functions"]}
    check({PARENT, SLEEP, "quick"} <= names, "the page has them: %s" % names)
    check(agent.probe("system")["sites"] == 4 and agent.probe("system")["hits"] >= 2 * (parents + sleeps), "hits")


def check_reload(agent, mine, probes):
    """The program calls all the time, while a probe on the same function comes and goes."""
    done_, counted = threading.Event(), []

    def busy():
        while not done_.is_set():
            counted[:] = mine.call("parent", 20)
    thread = threading.Thread(target=busy)
    thread.start()
    try:
        for _ in range(2):
            agent.reload(probes + MORE % ("mine", PARENT))
            agent.wait_measured("more", 1, mine, busy=True)
            agent.reload(probes)
            agent.wait_windows(2)
    finally:
        done_.set()
        thread.join()
    agent.wait_exact(counted[0], "system", PARENT)
    check(agent.probe("more") is None, "the other one is gone")
    agent.reload(probes + MORE % ("mine", PARENT))
    agent.wait_measured("more", 1, mine)
    more, _ = mine.call("parent", 70)
    agent.wait_exact(70, "more", PARENT)
    agent.wait_exact(more, "system", PARENT)


def check_wrong(agent, probes):
    agent.reload(probes + WRONG)
    wait_until(lambda: agent.probe("wrong")["reason"], "a misspelt function has a reason")
    wrong = agent.probe("wrong")
    check("no function" in wrong["reason"], "it is %(state)s: %(reason)s" % wrong)
    check(agent.probe("system")["state"] == "measured", "others are measured")
    agent.reload(probes)


def check_cost(agent, mine):
    """A probe that costs more than it may, while sampling goes on as before."""
    agent.wait_measured("system", 2, mine)
    done_ = threading.Event()

    def busy():
        while not done_.is_set():
            mine.call("parent", 20000)
    thread = threading.Thread(target=busy)
    thread.start()
    try:
        def ratio():
            return agent.metrics()['fathom_probe_measured_ratio{probe="system"}']
        wait_until(lambda: ratio() < 1, "fewer calls are measured", 180)
        metrics = agent.metrics()
        check(metrics["fathom_effective_frequency_hertz"] == metrics["fathom_configured_frequency_hertz"],
              "the sampling frequency is not lowered for it")
    finally:
        done_.set()
        thread.join()


for place, kind in ((TRACING, "tracefs"), ("/sys/kernel/debug", "debugfs")):
    if not os.listdir(place):
        subprocess.run(["/vm/bin/busybox", "mount", "-t", kind, "none", place], check=True)
program = os.path.join(BUILT, "calls")
paths = [shutil.copy(program, scratch(name)) for name in ("mine", "other")]
probes = SYSTEM % ("mine", PARENT, SLEEP) + USER % "mine"
with Program(paths[0]) as mine, Program(paths[1]) as other:
    with ProbingAgent(probes) as agent:
        check_counts(agent, mine, other)
        check_wrong(agent, probes)
        check_reload(agent, mine, probes)
        by = re.search(r'msg="kernel functions are measured".*', agent.log()).group(0)
        print(by)
        fact(re.search(r'by="([^"]*)"', by).group(1))
        agent.reload("")
        wait_until(lambda: not attached(), "nothing stays attached without probes", 120)
    with ProbingAgent(SYSTEM % ("mine", PARENT, SLEEP), "--cpu-budget=1") as agent:
        check_cost(agent, mine)
    wait_until(lambda: not attached(), "nothing stays attached after SIGKILL", 120)
fact("calls exact, a reload without a gap, the cost limited")
done()
