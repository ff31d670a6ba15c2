# SPDX-License-Identifier: Apache-2.0
"""What profile-guided optimization gains by our profiles, beside what it gains by Go's own profile of the same
load: a Markdown renderer (from the Go module proxy) with a fixed amount of work. Each profile is of the same CPU time:
one of more samples has more of the call sites that are seldom met. Where the linker happens to place the functions
changes a program's CPU time by as much as a profile does, so each profile's program, and the one without a profile, is
linked several times with its functions in random order, and the mean is compared. All programs take turns, in another
order each time. What the compiler reads of a profile are calls with weights: how much of that two profiles have in
common does not depend on the machine's noise."""
import collections
import itertools
import math
import os
import random
import shutil
import statistics
import subprocess

from fathom import FATHOM, SOURCES, Workload, environment, ran, record, scratch, text_of_docs

SOURCE = os.path.join(SOURCES, "gomarkdown")
PLAIN = "no profile"
PROFILED, MEASURED = 2500, 150  # renderings, of some milliseconds each
BUILDS = int(os.environ.get("PGO_BUILDS", "4"))  # profiles of each kind
LAYOUTS = int(os.environ.get("PGO_LAYOUTS", "8"))  # orders of the functions, for each profile
ROUNDS = int(os.environ.get("PGO_ROUNDS", "5"))


def go_build(out, profile, layout=0):
    """LAYOUT: a seed for the order of the functions, 0 for the linker's own."""
    subprocess.run(["go", "build", "-pgo=" + profile, *(["-ldflags=-randlayout=%d" % layout] if layout else []),
                    "-o", out, "."], cwd=SOURCE, check=True, env=dict(os.environ, GOFLAGS="-mod=mod"))
    return out


def layouts():
    """Go 1.22's linker was the first that can place functions in random order."""
    usage = subprocess.run(["go", "tool", "link", "-h"], capture_output=True, text=True)
    return range(1, LAYOUTS + 1) if "-randlayout" in usage.stdout + usage.stderr else [0]


def by_agent(program, source, seconds, store):
    """The profile that `fathom pgo` makes of what the agent has stored."""
    with Workload([program, source, str(100 * PROFILED)]) as w:
        agent = subprocess.Popen(
            [FATHOM, "agent", "--profiling-cpu-sampling-frequency=97", "--http-address=", "--http-socket=",
             "--local-store-directory=" + store], stderr=subprocess.DEVNULL, env=environment())
        enough = ran(w.pid, seconds=seconds)
        while not enough():
            agent.poll()
            subprocess.run(["sleep", "1"])
        agent.terminate()
        agent.wait()
    out = scratch("agent.pgo")
    subprocess.run([FATHOM, "pgo", "--local-store-directory=" + store, "-x", os.path.basename(program), "-o", out],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment())
    return out


def by_record(program, source, seconds):
    with Workload([program, source, str(100 * PROFILED)]) as w:
        record("-F", "97", "-p", w.pid, until=ran(w.pid, seconds=seconds))
    out = scratch("recorded.pgo")
    subprocess.run([FATHOM, "pgo", "-o", out, scratch("profile.pb.gz")], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, env=environment())
    return out


def by_go(program, source):
    out = scratch("go.pgo")
    cpu_ns(program, source, PROFILED, out)
    return out


def calls(profile):
    """The weight of each call (caller, callee, line) in PROFILE, as the compiler reads it; the sum is 1."""
    read = scratch("calls.preprofile")
    subprocess.run(["go", "tool", "preprofile", "-i", profile, "-o", read], check=True)
    with open(read) as f:
        lines = f.read().splitlines()[1:]
    weights = collections.Counter()
    for caller, callee, rest in zip(*[iter(lines)] * 3):
        line, weight = rest.split()
        weights[caller, callee, line] += int(weight)
    total = sum(weights.values())
    return {call: weight / total for call, weight in weights.items()}


def in_common(pairs):
    """The mean share of weight that the two of a pair of calls() have in common."""
    return statistics.mean(sum(min(weight, b.get(call, 0)) for call, weight in a.items()) for a, b in pairs)


def show_calls(show, profiles):
    """PROFILES: lists of calls(), by kind, Go's own first."""
    of_go, *others = profiles
    show("calls in common, by weight: two of Go's own profiles",
         "%.3f" % in_common(itertools.combinations(profiles[of_go], 2)), "theirs include runtime.asyncPreempt")
    for name in others:
        show("calls in common, by weight: %s and Go's own profile" % name,
             "%.3f" % in_common(itertools.product(profiles[name], profiles[of_go])),
             "two by %s: %.3f" % (name, in_common(itertools.combinations(profiles[name], 2))))


def cpu_ns(program, source, times=MEASURED, *profile):
    out = subprocess.run([program, source, str(times), *profile], check=True, capture_output=True, text=True).stdout
    return int(out.split()[1])


def ratio_of_means(of, to):
    """The ratio of the means of two lists, and its standard error."""
    def relative(sample):
        return statistics.stdev(sample) / len(sample) ** .5 / statistics.mean(sample) if len(sample) > 1 else 0
    ratio = statistics.mean(of) / statistics.mean(to)
    return ratio, ratio * math.hypot(relative(of), relative(to))


def pgo(show):
    if not shutil.which("go"):
        show("profile-guided optimization", "go is not installed")
        return
    source, plain = text_of_docs(), go_build(scratch("gomarkdown"), "off")
    seconds = cpu_ns(plain, source, PROFILED) / 1e9
    kinds = {
        "Go's own profile": lambda _: by_go(plain, source),
        "fathom record": lambda _: by_record(plain, source, seconds),
        "fathom agent": lambda i: by_agent(plain, source, seconds, scratch("pgo-store-%d" % i)),
    }
    # The tool came with Go 1.23. Two profiles of each kind are the least to compare.
    compares = BUILDS > 1 and not subprocess.run(["go", "tool", "-n", "preprofile"], capture_output=True).returncode
    programs, profiles, orders = collections.defaultdict(list), collections.defaultdict(list), layouts()
    for layout in orders:
        programs[PLAIN].append(go_build(scratch("plain-%d" % layout), "off", layout))
    for i in range(BUILDS):
        for name, profile in kinds.items():
            path = profile(i)
            if compares:
                profiles[name].append(calls(path))
            for layout in orders:
                programs[name].append(go_build(scratch("by-%s-%d-%d" % (name, i, layout)), path, layout))
    times, turns = collections.defaultdict(list), sum(programs.values(), [])
    for _ in range(ROUNDS):
        random.shuffle(turns)
        for program in turns:
            times[program].append(cpu_ns(program, source))
    medians = {name: [statistics.median(times[program]) for program in of] for name, of in programs.items()}
    for name in kinds:
        ratio, error = ratio_of_means(medians[name], medians[PLAIN])
        show("PGO by %s: CPU time, without: 1" % name, "%.3f ± %.3f" % (ratio, error),
             "%d profiles, each linked in %d orders; ± one standard error" % (BUILDS, len(orders)))
    if compares:
        show_calls(show, profiles)
