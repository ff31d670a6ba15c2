# SPDX-License-Identifier: Apache-2.0
"""Each recorded stack of foreign programs against the one that their calls and returns made: while a program is
recorded, shadow_stack.c runs it instruction by instruction and keeps the return addresses. So each stack that a sample
can meet is known without unwind tables, symbols or decoding of code. A stack is right if all its frames are; of one
that says it was cut, what it has must be. Callers that a search found ([guessed]) are counted by themselves.

Usage: shadow_stacks.py TOOL. Short: four programs, for some seconds each. FULL=1: all that are installed.
ONLY="x264 lua" chooses, SECONDS=30 is how long each is run. SHOW=1 prints stacks that are wrong."""
import bisect
import collections
import os
import platform
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "tests", folder) for folder in ("", "accuracy", "scenario")]
FULL = bool(os.environ.get("FULL"))
ONLY = os.environ.get("ONLY", "").split()
SHORT = ("python3", "openssl", "cc1", "clang")
if not ONLY and not FULL:
    os.environ["ONLY"] = " ".join(SHORT)
import bpf_map  # noqa: E402
import frame_pairs  # noqa: E402
from pprof_read import Profile  # noqa: E402

SECONDS = float(os.environ.get("SECONDS", "4" if FULL else "3"))
HZ = os.environ.get("HZ", "997")
SHOW = bool(os.environ.get("SHOW"))
FATHOM = frame_pairs.FATHOM
# What they do has to be in their first thread, not in processes that a shell starts.
DIRECT = {
    "cc1": lambda where: [subprocess.run(["gcc", "-print-prog-name=cc1"], capture_output=True, text=True).stdout.strip(),
                          "-O2", "-quiet", "-imultiarch", platform.machine() + "-linux-gnu", where + "/a.c", "-o", "/dev/null"],
    # Generated code that calls generated code.
    "node": lambda _: ["node", "-e", """
        const node = d => d ? { v: d, l: node(d - 1), r: node(d - 2 < 0 ? 0 : d - 2) } : null;
        const sum = (t, f) => t ? f(t.v) + sum(t.l, f) + sum(t.r, f) : 0;
        const fib = n => n < 2 ? n : fib(n - 1) + fib(n - 2);
        for (let i = 0; ; i++)
            sum(node(i % 12), i % 3 ? x => x * i : x => String(x).length) + fib(i % 15);"""],
    "git": lambda _: ["git", "-C", ROOT, "log", "--stat", "-n", "300"],
    "gzip": lambda where: ["gzip", "-9", "-c", where + "/text"],
    "jq": lambda where: ["jq", "-c", "map(.a+(.c|add))|add", where + "/a.json"],
    "grep": lambda where: ["grep", "-cE", "(a|b)*c|9.*1.*2$", where + "/text"],
    "ffmpeg": lambda _: ["ffmpeg", "-v", "quiet", "-nostdin", "-filter_threads", "1", "-f", "lavfi", "-i",
                         "mandelbrot=size=640x480", "-t", "20", "-threads", "1", "-c:v", "mpeg4", "-f", "null", "-"],
}
NOT = ("tar",)  # a shell's child does the work
# Where it begins to be run by instructions, in ms: at a program's start, all of that is the dynamic loader's work.
AFTER_MS = tuple(os.environ.get("AFTER_MS", "0 50 250 1000 2500" if FULL else "0 250").split())
LEAST_RIGHT = 50  # in each run, on average
MOST_RESTS = 100  # that are compared
# V8's trampolines between two functions, and its checks at their entry, run before a frame is made. Elsewhere one
# stack of a run may be wrong if the run began late: what had been called before is inferred.
MAY_BE_WRONG_IN = {"node": .15}


def place_in(path, file_off, address):
    if path == "[vdso]":
        return path, 0
    return (path, file_off) if path.startswith("/") else ("[anon]", address)


class Truth:
    def __init__(self, path):
        maps, self.nodes, states = [], {0: None}, []
        with open(path) as f:
            for line in f:
                word = line.split(None, 4)
                if word[0] == "map":
                    maps.append((int(word[1], 16), int(word[2], 16), int(word[3], 16), word[4].strip()))
                elif word[0] == "node":
                    self.nodes[int(word[1], 16)] = int(word[2], 16), int(word[3], 16)
                else:
                    states.append((int(word[1], 16), int(word[2], 16)))
        self.maps = sorted(maps)
        self.starts = [m[0] for m in self.maps]
        self.at = collections.defaultdict(list)
        self.chains = {0: ()}
        for pc, node in states:
            self.at[self.place(pc)].append(node)

    def place(self, address):
        """(file, offset in it) of an address, or ("[anon]", address): of generated code."""
        i = bisect.bisect_right(self.starts, address) - 1
        if i < 0 or address >= self.maps[i][1]:
            return "[anon]", address
        start, _, offset, path = self.maps[i]
        return place_in(path, address - start + offset, address)

    def chain(self, node):
        """The places before the return addresses, innermost first."""
        todo = []
        while node not in self.chains:
            todo.append(node)
            node = self.nodes[node][0]
        for n in reversed(todo):
            parent, ret = self.nodes[n]
            self.chains[n] = (self.place(ret - 1),) + self.chains[parent]
        return self.chains[todo[0] if todo else node]


def parts_of(frames):
    """(places up to where frames are missing, those after it or None, whether it is cut, whether a caller was guessed)."""
    inner, outer, cut, guessed = [], None, False, False
    for f in frames:
        if f["func"] == "[guessed]":
            guessed = True
        elif f["func"].startswith("[truncated"):
            cut = True
        elif f["func"] == "[frames lost]":
            outer = []
        else:
            (inner if outer is None else outer).append(
                place_in(f["mapping"], f["file_off"], f["address"]))
    return inner, outer, cut, guessed


def fits(inner, outer, cut, true):
    if not cut and outer is None:
        return tuple(inner) == true
    outer = tuple(outer or ())
    return true[:len(inner)] == tuple(inner) and true[len(true) - len(outer):] == outer


class Judge:
    """Of one run. What had been called before is not known if it began later, but it is the same for all samples:
    what a stack has below the known frames is an end of that."""

    def __init__(self, truth, from_root, samples):
        self.truth, self.from_root, self.rest = truth, from_root, ()
        if not from_root:
            self.learn(collections.Counter(self.rest_of(frames) for _, frames in samples))

    def rest_of(self, frames):
        """Of the stacks that the leaf was seen with, the longest that fits leaves no more than there was."""
        inner, outer, cut, _ = parts_of(frames)
        if cut or outer is not None or not inner:
            return ()
        chains = [self.truth.chain(node) for node in self.truth.at.get(inner[0], [])]
        fitting = [len(c) for c in chains if len(c) < len(inner) and tuple(inner[1:1 + len(c)]) == c]
        return tuple(inner[1 + max(fitting):]) if fitting else ()

    def learn(self, rests):
        """The one that most others are ends of, among the longest."""
        def agree(rest):
            return sum(n for other, n in rests.items() if rest[len(rest) - len(other):] == other)
        self.rest = max(sorted(rests, key=len)[-MOST_RESTS:], key=agree, default=())

    def whole(self, chain):
        """All that the whole stack can be."""
        if self.from_root:
            return [chain]
        return [chain + self.rest[i:] for i in range(len(self.rest) + 1)]

    def judge(self, frames):
        """"right", "cut", "wrong" or why it is not known."""
        inner, outer, cut, _ = parts_of(frames)
        if not inner:
            return "empty"
        nodes = self.truth.at.get(inner[0])
        if not nodes:
            return "not seen"
        for node in nodes:
            for true in self.whole(self.truth.chain(node)):
                if fits(inner[1:], outer, cut, true):
                    return "cut" if cut or outer is not None else "right"
        return "wrong"


def mutilated(frames):
    """The stack without a caller, and with one twice."""
    for i in range(1, len(frames)):
        yield frames[:i] + frames[i + 1:]
        yield frames[:i] + [frames[i]] + frames[i:]


def wait_until_it_samples(process):
    """Until its BPF program has run: until then it prepares itself and loads tables."""
    for _ in range(600):
        time.sleep(.1)
        try:
            counts = bpf_map.PerCpuArray(process.pid, bpf_map.COUNTS)
        except OSError:
            continue
        ran = any(counts.sums())
        counts.close()
        if ran or process.poll() is not None:
            break


def run(tool, argv, after_ms, where):
    truth, out = os.path.join(where, "truth"), os.path.join(where, "profile.pb.gz")
    for path in (truth, out):
        if os.path.exists(path):
            os.unlink(path)
    t = subprocess.Popen([tool, truth, str(SECONDS), after_ms] + argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, text=True, cwd=ROOT)
    pid = t.stdout.readline().strip()
    if not pid:
        t.wait()
        return None
    with subprocess.Popen([FATHOM, "record", "-U", "-F", HZ, "-p", pid, "-d", str(int(SECONDS) + 60), "-o", out,
                           "--cache-directory", where + "/cache"], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as f:
        wait_until_it_samples(f)
        t.stdin.write("\n")
        t.stdin.flush()
        did = t.stdout.readline().strip()
        f.terminate()
        f.wait()
    t.stdin.close()
    t.wait()
    if not did or not os.path.exists(out):
        return None
    return Truth(truth), Profile(out), int(pid), did


def show(truth, frames):
    inner = parts_of(frames)[0]
    print("  recorded: " + " < ".join("%s+%#x" % (os.path.basename(p), o) for p, o in inner))
    for node in truth.at[inner[0]][:3]:
        print("      true: " + " < ".join("%s+%#x" % (os.path.basename(p), o) for p, o in truth.chain(node)))


def judged(name, after_ms, result, total, guesses, noticed):
    truth, profile, pid, did = result
    samples = [(s["values"][0], [f for f in s["frames"] if not f["inlined"]]) for s in profile.samples
               if s["numbers"].get("tid", pid) == pid]
    from_root = after_ms == "0"
    judge, counts = Judge(truth, from_root, samples), collections.Counter()
    for n, frames in samples:
        verdict = judge.judge(frames)
        counts[verdict] += n
        if parts_of(frames)[3]:
            guesses[verdict] += n
        if verdict == "wrong" and SHOW:
            show(truth, frames)
        if verdict == "right" and from_root:
            for other in mutilated(frames):
                noticed[judge.judge(other)] += 1
    total.update(counts)
    print("%-8s after %s ms: %s; %s" % (
        name, after_ms, ", ".join("%d %s" % (n, v) for v, n in counts.most_common()), did), flush=True)
    return counts["wrong"] <= (0 if from_root else MAY_BE_WRONG_IN.get(name, 0) * sum(counts.values()) + 1)


def main():
    failed, recorded = False, 0
    total, guesses, noticed = collections.Counter(), collections.Counter(), collections.Counter()
    with tempfile.TemporaryDirectory() as where:
        for name, argv in frame_pairs.programs(where).items():
            if name in NOT:
                continue
            argv = DIRECT[name](where) if name in DIRECT else argv
            for after_ms in AFTER_MS:
                result = run(sys.argv[1], argv, after_ms, where)
                if result:
                    failed |= not judged(name, after_ms, result, total, guesses, noticed)
                    recorded += 1
                elif after_ms == "0":
                    print("FAIL %s: not recorded" % name)
                    failed = True
    print("with a caller less, or one twice: %s" % dict(noticed))
    print("with a caller that was found by a search: %s" % dict(guesses))
    print("%d runs: %s" % (recorded, ", ".join("%d stacks %s" % (n, v) for v, n in total.most_common())))
    failed |= noticed["wrong"] < .95 * sum(noticed.values())
    return 1 if failed or total["right"] < LEAST_RIGHT * recorded else 0


if __name__ == "__main__":
    sys.exit(main())
