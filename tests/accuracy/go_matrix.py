#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# May run beside another test: it judges what samples say, no shares of time.
"""Goroutine ids and labels of samples against the goroutines themselves: versions of Go x kinds of build.

  tests/accuracy/go_matrix.py [VERSION...]

Builds tests/workloads/gomatrix, whose goroutines spell their id by the functions on their stacks and have its last
digits as a pprof label, and records 100,000 of them that end soon beside some that last: a sample with all digits
on its stack must have that goid and that label. Of both at least 99.9 % are right, and at most 0.01 % another
goroutine's; where goids are not known, no sample has either. The last lines are a table. FULL=1 runs all versions and
kinds instead of four cells; KINDS="static cgo" selects, CHURN=N makes N goroutines, HZ=N samples less often, TIMEOUT=S
waits longer for a slow machine. RESULTS=FILE takes up a run that was interrupted: the table is added to FILE, and
cells that it has as `ok` are not run again. PACKER names UPX where it is not in the path (Debian 12 has upx-ucl in
bookworm-backports). PROGRAMS=DIR takes the programs that are there: BUILD_ONLY=1 (and GOARCH) builds them for a
machine without Go.
"""
import collections
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests"))
sys.path.insert(0, os.path.join(ROOT, "tests/scenario"))
sys.dont_write_bytecode = True
import bpf_map  # noqa: E402
import pprof_read  # noqa: E402

BUILD = os.path.join(ROOT, os.environ.get("FATHOM_BUILD", "build"))
FATHOM = os.path.join(ROOT, os.environ.get("FATHOM", os.path.join(BUILD, "fathom")))
WORKLOAD = os.path.join(ROOT, "tests/workloads/gomatrix")
VERSIONS = ["1.16.15", "1.17.13", "1.18.10", "1.19.13", "1.20.14", "1.21.13", "1.22.12", "1.23.12",
            "1.24.13", "1.25.14", "1.26.8", "1.27.4"]  # each minor version
SHORT = [("1.16.15", "static"), ("1.20.14", "external-pie-stripped"), ("1.27.4", "stripped"), ("local", "c-shared")]

# How a kind is built: with cgo or not, build mode and flags, what the linker gets.
Kind = collections.namedtuple("Kind", "cgo flags link")
STRIPPED = "-s -w"
KINDS = {
    "static": Kind(0, [], ""),
    "stripped": Kind(0, [], STRIPPED),
    "pie": Kind(0, ["-buildmode=pie"], ""),
    "pie-stripped": Kind(0, ["-buildmode=pie"], STRIPPED),
    "cgo": Kind(1, [], ""),
    "external": Kind(1, [], "-linkmode=external"),
    "external-stripped": Kind(1, [], "-linkmode=external " + STRIPPED),
    "external-pie": Kind(1, ["-buildmode=pie"], "-linkmode=external"),
    "external-pie-stripped": Kind(1, ["-buildmode=pie"], "-linkmode=external " + STRIPPED),
    "external-static": Kind(1, [], "-linkmode=external -extldflags=-static"),
    "c-shared": Kind(1, ["-buildmode=c-shared"], ""),
    "c-shared-stripped": Kind(1, ["-buildmode=c-shared"], STRIPPED),
    "c-shared-twice": Kind(1, ["-buildmode=c-shared"], ""),
    "plugin": Kind(1, ["-buildmode=plugin"], ""),
    "upx": Kind(0, [], ""),
}
UNKNOWN = {"upx"}  # kinds without goids and names
REASON = "a packed program (UPX)"  # what record says of code that is in no file
UPX = os.environ.get("PACKER") or shutil.which("upx") or shutil.which("upx-ucl")
# Of two libraries with a runtime each, one is read. Both run the same load: about half of the goroutines are unknown.
# Only KINDS selects it: Go does not support that, and with 1.27.4 the program hung without fathom, too.
MAY_BE_UNKNOWN = {"c-shared-twice"}
KNOWN_OF_TWO = .3
BETWEEN = "between_calls"  # C code of a thread that has called Go, and does so no more
LABEL, LABEL_VALUES = "churn", 1 << 12  # what the workload calls its label, and how many values it has
RIGHT, WRONG = .999, .0001
# A slow guest has so few samples that two without a label are more than one in a thousand: so many may lack theirs
# there, if fathom itself says that they do (LOST). None may have another's instead.
MAY_LACK_IN_GUEST = 3
LOST = re.compile(r"(\d+) samples of Go programs without some of their pprof labels \((.*)\)")
# Handlers with what they interrupted. With cgo its caller may be missing: a walk that user space finishes (its tables
# were not loaded yet) has one other stack, from the frame pointer on.
WHOLE = .95
MIN_SAMPLES = 1000
MIN_BETWEEN = 100
HZ = os.environ.get("HZ", "7993")
RESULTS = os.environ.get("RESULTS")
PROGRAMS, BUILD_ONLY = os.environ.get("PROGRAMS"), os.environ.get("BUILD_ONLY")
DIGIT = re.compile(r"gomatrix/churn\.digit([0-9a-f])$")
DIGITS = 6
TIMEOUT_S = int(os.environ.get("TIMEOUT", "240"))

Cell = collections.namedtuple("Cell", "version kind verdict samples goids labels note")
# Weights of samples: those that have the right one, another goroutine's, and none.
Score = collections.namedtuple("Score", "right wrong none")
NOTHING = Score(0, 0, 0)


class NotPossible(Exception):
    """What a cell cannot be built or run for."""


def is_kept(program):
    return os.path.exists(program) and not BUILD_ONLY


def cc(source, output):
    subprocess.run([os.environ.get("CC", "cc"), "-O1", "-o", output, os.path.join(WORKLOAD, source), "-ldl",
                    "-lpthread"], check=True)


def go(version, kind, package, output, link):
    if is_kept(output):
        return
    # Go 1.19 mistakes the package index that newer versions left in the cache for its own.
    env = dict(os.environ, GOTOOLCHAIN=version if version == "local" else "go" + version, GOFLAGS="-mod=mod", GODEBUG="goindex=0",
               CGO_ENABLED=str(kind.cgo), CGO_CFLAGS="-O2 -g")
    flags = kind.flags if package != "./pluginhost" else []
    argv = ["go", "build", *flags, "-ldflags=" + link, "-o", output, package]
    done = subprocess.run(argv, cwd=WORKLOAD, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise NotPossible("cannot be built: " + done.stdout.strip()[-300:])


def build(version, name, directory):
    """The command of the cell's program."""
    kind = KINDS[name]
    program = os.path.join(directory, "churn")
    if name.startswith("c-shared"):
        host = os.path.join(directory, "host")
        if not is_kept(host):
            cc("host/host.c", host)
        go(version, kind, "./shared", program + ".so", kind.link)
        libraries = [program + ".so"]
        if name == "c-shared-twice":
            libraries.append(os.path.join(directory, "again.so"))
            if not is_kept(libraries[1]):
                shutil.copy(program + ".so", libraries[1])
        return [host, *libraries]
    if name == "plugin":
        go(version, kind, "./pluginhost", program, kind.link)
        go(version, kind, "./plugin", program + ".so", kind.link)
        return [program, program + ".so"]
    packed = is_kept(program)
    go(version, kind, ".", program, kind.link)
    if name == "upx" and not packed:
        done = subprocess.run([UPX, "-1", "-q", program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            raise NotPossible("cannot be packed: " + done.stdout[-300:])
    return [program]


def ask_map(kind, fathom, name, question):
    """The answer of fathom's map NAME; False if it has none, because it has just begun or ended."""
    try:
        opened = kind(fathom, name)
    except OSError:
        return False
    try:
        return question(opened)
    finally:
        opened.close()


def samples_now(fathom):
    return ask_map(bpf_map.PerCpuArray, fathom, bpf_map.COUNTS, lambda counts: counts.sums()[bpf_map.TAKEN] > 0)


def facts_are_there(fathom, pid):
    """Whether BPF has how to read the goroutines of process PID."""
    return ask_map(bpf_map.Hash, fathom, bpf_map.RUNTIMES, lambda runtimes: runtimes.has(pid))


def wait_for(condition, what):
    end = time.monotonic() + TIMEOUT_S
    while not condition():
        if time.monotonic() > end:
            raise NotPossible("no " + what)
        time.sleep(.05)


def wait_for_line(program, start, count=1):
    """Reads the program's lines up to the one with which COUNT have started so."""
    for line in program.stdout:
        count -= line.startswith(start)
        if not count:
            return
    raise NotPossible("the program ended, status %s" % program.wait())


def wait_for_facts(fathom, program, known):
    """Waits until goroutines can be read; where that may never be, for a while."""
    wait_for(lambda: fathom.poll() is not None or samples_now(fathom.pid), "samples")
    if known:
        wait_for(lambda: fathom.poll() is not None or facts_are_there(fathom.pid, program.pid), "facts in BPF")
    else:
        time.sleep(1)


def record_churn(program, loads, profile, env, known):
    """Records the goroutines of PROGRAM's loads from before they begin until they have ended; returns what fathom
    said."""
    argv = [FATHOM, "record", "-F", HZ, "-p", str(program.pid), "-o", profile, "--log-level=info"]
    with open(profile + ".log", "w+") as log, \
            subprocess.Popen(argv, env=env, stdout=log, stderr=subprocess.STDOUT) as fathom:
        try:
            wait_for_facts(fathom, program, known)
            for _ in range(loads):  # Go does not stand two runtimes that both are busy with signals
                program.stdin.write("\n")
                program.stdin.flush()
                wait_for_line(program, "churned")
            fathom.send_signal(signal.SIGINT)
            status = fathom.wait(TIMEOUT_S)
        finally:
            fathom.kill()
        log.seek(0)
        text = log.read()
    if status:
        raise NotPossible("record: exit status %d: %s" % (status, text[-500:]))
    return text


def index_what_runs(pid, directory, env):
    """Puts the indexes of what process PID runs into the cache."""
    subprocess.run([FATHOM, "record", "-q", "-F", "199", "-d", "1", "-p", str(pid), "-o", os.path.join(directory, "first.pb.gz")],
                   env=env, check=True)


def run(argv, loads, directory, known):
    """The profile's samples of the program, which runs so many loads, and what fathom said. KNOWN: its goroutines can
    be read."""
    env = dict(os.environ, XDG_CACHE_HOME=directory)
    profile = os.path.join(directory, "churn.pb.gz")
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as program:
        watchdog = threading.Timer(TIMEOUT_S, program.kill)
        watchdog.start()
        try:
            wait_for_line(program, "ready", loads)
            index_what_runs(program.pid, directory, env)
            said = record_churn(program, loads, profile, env, known)
        finally:
            watchdog.cancel()
            program.kill()
        pid = program.pid
    return [s for s in pprof_read.Profile(profile).samples if s["numbers"].get("pid") == pid], said


def spelled_goid(sample):
    """The id that the functions on the stack spell, innermost first its highest digit; None without all digits."""
    digits = [m.group(1) for m in (DIGIT.search(f["func"]) for f in sample["frames"]) if m]
    return int("".join(digits), 16) if len(digits) == DIGITS else None


def judge(samples, said, expected):
    """The score of what SAID(sample) is, against EXPECTED(goid), in samples of known goroutines."""
    right = wrong = none = 0
    for sample in samples:
        goid = spelled_goid(sample)
        if goid is None:
            continue
        weight, got, truth = sample["values"][0], said(sample), expected(goid)
        right += weight * (got == truth)
        wrong += weight * (got not in (truth, None))
        none += weight * (got is None)
        if os.environ.get("SHOW") and got != truth:
            print("    %s instead of %s: %s" % (got, truth, " < ".join(f["func"] or "?" for f in sample["frames"])))
    return Score(right, wrong, none)


def is_good(score, may_be_unknown, lost=0):
    """LOST: of how many samples fathom says that they lack this."""
    count, right = sum(score), KNOWN_OF_TWO if may_be_unknown else RIGHT
    excused = min(score.none, lost, MAY_LACK_IN_GUEST) if PROGRAMS else 0
    return count >= MIN_SAMPLES and score.wrong <= WRONG * count and score.right + excused >= right * count


def judge_handlers(samples, kind):
    """Weights of samples in signal handlers: all, those with the function by which handlers return and the interrupted
    function, and those with its caller too. Where libc is stripped, its function to return by is named by its place.
    On aarch64 handlers return by the vDSO."""
    returns = ("runtime.sigreturn", "runtime.sigreturn__sigaction", "__kernel_rt_sigreturn") + ("", "__restore_rt") * kind.cgo
    handlers = named = whole = late = 0
    for sample in samples:
        # A guest's host takes its time: tables that come after the sample are not the walk's fault.
        is_late = PROGRAMS and sample["frames"] and sample["frames"][-1]["func"] == "[truncated: not_loaded]"
        names = [f["func"] for f in sample["frames"] if not f["func"].startswith("[")]  # [truncated: why]
        if "runtime.sigtramp" not in names:
            continue
        rest = names[names.index("runtime.sigtramp") + 1:]
        stripped = kind.cgo and re.fullmatch(r"libc\.so\.6\+0x[0-9a-f]+", rest[0] if rest else "")
        good = len(rest) > 1 and (rest[0] in returns or bool(stripped))
        if is_late and not good:
            late += sample["values"][0]
            continue
        handlers += sample["values"][0]
        named += sample["values"][0] * good
        whole += sample["values"][0] * (good and len(rest) > 2)
        if os.environ.get("SHOW") and not good:
            print("    handler below " + " < ".join(n or "?" for n in rest))
    return handlers, named, whole, late


def judge_between(samples, kind):
    """What is wrong with samples outside of Go: those must have no goroutine, not even below a signal handler of Go."""
    if not kind.startswith("c-shared"):
        return ""
    outside = [s for s in samples if any(f["func"] == BETWEEN for f in s["frames"])]
    count = sum(s["values"][0] for s in outside)
    known = sum(s["values"][0] for s in outside
                if "goid" in s["numbers"] or LABEL in s["labels"] or "go_state" in s["labels"])
    if known <= WRONG * count and count >= MIN_BETWEEN:
        return ""
    return "; %d of %d samples between calls are of a goroutine" % (known, count)


def judge_unknown(version, name, samples, said):
    """A program of which nothing is known: no goid, no name but the kernel's, and a reason."""
    user = [f for s in samples for f in s["frames"] if f["address"] < 1 << 63]
    named = {f["func"] for f in user if f["func"] and "vdso" not in f["func"] and f["func"][0] != "["}
    goids = {s["numbers"]["goid"] for s in samples if "goid" in s["numbers"]}
    labels = {s["labels"][LABEL] for s in samples if LABEL in s["labels"]}
    count = sum(s["values"][0] for s in samples)
    faults = ["names: %s" % sorted(named)[:3]] * bool(named) + ["goids: %s" % sorted(goids)[:3]] * bool(goids)
    faults += ["labels: %s" % sorted(labels)[:3]] * bool(labels)
    faults += ["no reason"] * (REASON not in said) + ["few samples"] * (count < MIN_SAMPLES)
    return Cell(version, name, "FAIL" if faults else "ok", count, Score(0, len(goids), count),
                Score(0, len(labels), count), "; ".join(faults) or "refused: " + REASON)


def programs_of(version, name, directory):
    """The directory for the programs of a cell."""
    if not PROGRAMS:
        return directory
    kept = os.path.join(PROGRAMS, "%s-%s" % (version, name))
    os.makedirs(kept, exist_ok=True)
    return kept


def test(version, name):
    with tempfile.TemporaryDirectory(prefix="go-matrix-") as directory:
        try:
            argv = build(version, name, programs_of(version, name, directory))
            if BUILD_ONLY:
                return Cell(version, name, "ok", 0, NOTHING, NOTHING, "built")
            if PROGRAMS:  # may be a guest's shared folder, too slow to be read while the program runs
                argv = [shutil.copy(f, directory) for f in argv]
            loads = 2 if name == "c-shared-twice" else 1
            samples, said = run(argv, loads, directory, name not in UNKNOWN | MAY_BE_UNKNOWN)
        except NotPossible as e:
            return Cell(version, name, "FAIL", 0, NOTHING, NOTHING, str(e))
    if name in UNKNOWN:
        return judge_unknown(version, name, samples, said)
    goids = judge(samples, lambda s: s["numbers"].get("goid"), lambda goid: goid)
    labels = judge(samples, lambda s: s["labels"].get(LABEL), lambda goid: "%03x" % (goid % LABEL_VALUES))
    handlers, named, whole, late = judge_handlers(samples, KINDS[name])
    lost = LOST.search(said)
    good = is_good(goids, name in MAY_BE_UNKNOWN) and is_good(labels, name in MAY_BE_UNKNOWN, int(lost.group(1)) if lost else 0)
    between = judge_between(samples, name)
    good = good and not between and (named if KINDS[name].cgo else whole) >= WHOLE * handlers and late <= handlers
    return Cell(version, name, "ok" if good else "FAIL", sum(goids), goids, labels,
                "handlers %d, with what they interrupted %d, and its caller %d; %d without tables yet%s%s" %
                (handlers, named, whole, late, "; labels missing: " + lost.group(2) if lost else "", between))


def shown(score):
    return "%7.3f  %5d  %5d" % (100 * score.right / (sum(score) or 1), score.wrong, score.none)


def show(cell):
    line = "%-4s %-8s %-22s %7d  %s  %s  %s" % (cell.verdict, cell.version, cell.kind, cell.samples, shown(cell.goids),
                                                shown(cell.labels), cell.note)
    print(line, flush=True)
    if RESULTS:
        with open(RESULTS, "a") as results:
            results.write(line + "\n")


def good_already():
    """The cells that RESULTS has as good."""
    if not (RESULTS and os.path.exists(RESULTS)):
        return set()
    with open(RESULTS) as results:
        return {tuple(line.split()[1:3]) for line in results if line.startswith("ok ")}


def cells_to_run():
    versions, kinds = sys.argv[1:], os.environ.get("KINDS", "").split()
    if not (versions or kinds or os.environ.get("FULL")):
        return SHORT
    kinds = kinds or [k for k in KINDS if (k != "upx" or UPX) and k not in MAY_BE_UNKNOWN]
    good = good_already()
    return [(v, k) for v in versions or VERSIONS for k in kinds if (v, k) not in good]


def main():
    if not (shutil.which("go") or PROGRAMS):
        print("go is not installed")
        return 77
    if os.geteuid() != 0:
        print("needs root")
        return 77
    print("     go       kind                   samples  goids %  wrong   none  labels %  wrong   none", flush=True)
    failed = judged = wrong = labels_wrong = 0
    cells = cells_to_run()
    for version, kind in cells:
        cell = test(version, kind)
        show(cell)
        failed += cell.verdict == "FAIL"
        judged += cell.samples
        wrong += cell.goids.wrong
        labels_wrong += cell.labels.wrong
    print("%d cells, %d failed; %d samples of known goroutines, %d with another's id, %d with another's label" % (
        len(cells), failed, judged, wrong, labels_wrong))
    return 1 if failed or not (cells or good_already()) else 0


if __name__ == "__main__":
    sys.exit(main())
