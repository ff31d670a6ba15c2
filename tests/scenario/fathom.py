# SPDX-License-Identifier: Apache-2.0
"""Common code of the scenario tests: workloads that print their own truth, runs of build/fathom, and
checks that are all evaluated before the test ends.

A test is an executable NN-name: `from fathom import *`, workloads in `with`, check(...) lines,
done() at the end. Exit 0 passed, 1 failed, 77 skipped with the reason as last line.
"""
import atexit
import collections
import contextlib
import glob
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOT = os.path.dirname(TESTS)
sys.path.insert(0, TESTS)
sys.dont_write_bytecode = True
import bpf_map  # noqa: E402
import pprof_read  # noqa: E402

BUILD = os.path.join(ROOT, os.environ.get("FATHOM_BUILD", "build"))
FATHOM = os.path.join(ROOT, os.environ.get("FATHOM", os.path.join(BUILD, "fathom")))
SOURCES = os.path.join(TESTS, "workloads")
# The two ways in which BPF finds the mapping of a pc: in the kernel's tree of mappings if it can be
# read, or in a table of ranges.
LOOKUPS = {"mappings": (), "ranges": ("--test-without=vma-lookup",)}
BUILT = os.path.join(BUILD, "tests/workloads")
# One index cache for all scenarios, so that each module is indexed once; a scenario that inspects
# the cache passes its own.
CACHE = os.path.join(BUILD, "tests/cache")
if os.path.isdir(CACHE) and os.stat(CACHE).st_uid != os.geteuid() == 0:
    # setup makes the build directory the user's; a cache is trusted only if root owns it.
    subprocess.run(["chown", "-R", "0:0", CACHE], check=True)
SCRATCH = tempfile.mkdtemp(prefix="scenario-")
atexit.register(shutil.rmtree, SCRATCH, ignore_errors=True)
RECORD_TIMEOUT_S = 120
UNTIL_TIMEOUT_S = 400  # timeout of a run that waits for a workload's CPU time

_failures = []
_facts = []


# ---- verdicts -------------------------------------------------------------------------------
def check(condition, text):
    """A condition that must hold; the test goes on, so that one run shows all failures."""
    print("%s: %s" % ("ok  " if condition else "FAIL", text))
    if not condition:
        _failures.append(text)


def fact(text):
    """A figure for the test's last line."""
    _facts.append(text)


def stop(text):
    """Fails the test, which cannot go on."""
    print("FAIL: " + text)
    sys.exit(1)


def skip(reason):
    print(reason)
    sys.exit(77)


def need_mounts():
    """Skips if mount namespaces do not work: `unshare -m` changes the propagation of all mounts from the
    root on, which must be a mount point. The root of a chroot may not be one."""
    r = subprocess.run(["unshare", "-m", "true"], capture_output=True, text=True)
    if r.returncode:
        skip("wants a mount namespace (in a chroot, a root that is a mount point): " + r.stderr.strip())


def done():
    print("; ".join(_failures or _facts))
    sys.exit(1 if _failures else 0)


def scratch(name):
    return os.path.join(SCRATCH, name)


def text_of_docs():
    """Path of a file with all pages of docs/: Markdown for the workload gomarkdown."""
    path = scratch("text.md")
    if not os.path.exists(path):
        with open(path, "w") as out:
            for page in sorted(glob.glob(os.path.join(ROOT, "docs/*.md"))):
                with open(page) as f:
                    out.write(f.read())
    return path


def share(part, whole):
    """Percent of the weight of PART in WHOLE (lists of samples)."""
    return 100.0 * weight(part) / max(weight(whole), 1)


# ---- workloads ------------------------------------------------------------------------------
FRAME_POINTERS = ("-fno-omit-frame-pointer -mno-omit-leaf-frame-pointer "
                  "-fno-optimize-sibling-calls -fno-shrink-wrap")
C = "gcc -O1 -g -D_GNU_SOURCE %s -pthread -o {out} {source}" % FRAME_POINTERS
RECIPES = {
    ".c": C,
    ".cc": "g++ -O2 -g %s -o {out} {source}" % FRAME_POINTERS,
    ".rs": "rustc -O -g -C force-frame-pointers=yes -o {out} {source}",
}


_built = {}


def built(source, name=None, recipe=None):
    """Path of the program made from tests/workloads/SOURCE, rebuilt if it is older than its source."""
    path = os.path.join(SOURCES, source)
    stem, suffix = os.path.splitext(source)
    out = os.path.join(BUILT, name or stem)
    if _built.setdefault(out, (source, recipe)) != (source, recipe):
        stop("%s and %s would both be %s" % (_built[out][0], source, out))
    newest = max([os.path.getmtime(path)] + [os.path.getmtime(os.path.join(path, f))
                                             for f in os.listdir(path)]
                 if os.path.isdir(path) else [os.path.getmtime(path)])
    if os.path.exists(out) and os.path.getmtime(out) >= newest:
        return out
    os.makedirs(BUILT, exist_ok=True)
    new = "%s.%d.new" % (out, os.getpid())  # two tests may build it at once
    command = (recipe or RECIPES[suffix]).format(out=new, source=path)
    cwd = path if os.path.isdir(path) else SOURCES
    r = subprocess.run(command, shell=True, cwd=cwd, capture_output=True, text=True)
    if r.returncode:
        stop("building %s: %s\n%s" % (source, command, r.stderr))
    os.rename(new, out)
    return out


class Workload:
    """A running program that printed `ready` after lines of truth: facts[KEY] = [rest, ...]."""

    def __init__(self, argv, wrapper=(), ready=b"ready", **popen):
        self.process = subprocess.Popen([*wrapper, *argv], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, start_new_session=True, **popen)
        self.pid = self.process.pid
        self.facts = collections.defaultdict(list)
        for line in self.process.stdout:
            if line.strip() == ready:
                return
            key, _, rest = line.rstrip(b"\n").decode(errors="surrogateescape").partition(" ")
            self.facts[key].append(rest)
        stop("%s ended before it was ready" % (argv,))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        self.process.stdout.close()

    def rest_of_output(self):
        """Waits for the program to end by itself; returns its output after `ready`."""
        text = self.process.stdout.read().decode(errors="replace")
        self.process.wait()
        return text


def own_copy(program):
    """A copy with a name unique on this machine, for tests that select by name."""
    return shutil.copy(program, scratch("%s_%d" % (os.path.basename(program)[:7], os.getpid())))


@contextlib.contextmanager
def cgroup2_root():
    """Where cgroup v2 is mounted: /sys/fs/cgroup, or below it beside version 1; else we mount it there
    for the duration of the test. None if the kernel does not support it."""
    with open("/proc/self/mounts") as f:
        points = [l.split()[1] for l in f if l.split()[2] == "cgroup2"]
    point = next((p for p in points if p.startswith("/sys/fs/cgroup")), None)
    if point:
        yield point
        return
    point = "/sys/fs/cgroup"
    beside = os.path.ismount(point)
    if beside:
        point += "/fathom-mount-%d" % os.getpid()
        os.mkdir(point)
    mounted = subprocess.run(["mount", "-t", "cgroup2", "none", point], check=False).returncode == 0
    try:
        yield point if mounted else None
    finally:
        if mounted:
            subprocess.run(["umount", "-l", point], check=True)
        if beside:
            os.rmdir(point)


# ---- CPU time, since a busy machine may give a program little of each second ----------------
def cpu_seconds(pid):
    """CPU time of all threads of the process, and of its ended children."""
    with open("/proc/%d/stat" % pid, "rb") as f:
        fields = f.read().rpartition(b")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def thread_seconds(tid):
    with open("/proc/%d/task/%d/schedstat" % (tid, tid)) as f:
        return int(f.read().split()[0]) / 1e9


def ran(*pids, seconds=2, of=cpu_seconds):
    """For `until`: whether each process has had so much CPU time since the first call."""
    first = {}
    return lambda: all([of(pid) - first.setdefault(pid, of(pid)) >= seconds for pid in pids])


def samples_now(pid):
    """Whether process PID has taken a sample. Its events and maps exist long before that."""
    try:
        counts = bpf_map.PerCpuArray(pid, bpf_map.COUNTS)
    except OSError:
        return False
    try:
        return counts.sums()[bpf_map.TAKEN] > 0
    finally:
        counts.close()


# ---- runs of the program --------------------------------------------------------------------
Result = collections.namedtuple("Result", "status stdout stderr profile")


def environment(cache=None):
    """The environment without servers and a terminal width that the user may have set."""
    rest = {name: value for name, value in os.environ.items()
            if name not in ("DEBUGINFOD_URLS", "COLUMNS")}
    return dict(rest, XDG_CACHE_HOME=cache or CACHE)


def interrupt(process, until):
    """Sends Ctrl-C once it samples and UNTIL() holds."""
    end = time.monotonic() + UNTIL_TIMEOUT_S
    sampling = False
    while process.poll() is None and time.monotonic() < end:
        sampling = sampling or samples_now(process.pid)
        if sampling and until():
            process.send_signal(signal.SIGINT)
            return
        time.sleep(.02)


def output_of(process, timeout=None):
    """The rest of the process's output and its errors, as bytes, when it has ended. What it has left behind may hold
    the pipes open for as long as it likes: that is given a moment. Nothing may have been read with a buffer."""
    end = time.monotonic() + (timeout or RECORD_TIMEOUT_S)
    had_ended = False
    while True:
        try:
            return process.communicate(timeout=1)
        except subprocess.TimeoutExpired as e:
            if had_ended:
                return e.stdout or b"", e.stderr or b""
            had_ended = process.poll() is not None
            if not had_ended and time.monotonic() > end:
                raise


def fathom(*arguments, cache=None, wrapper=(), text=True, until=None, **popen):
    """Runs `fathom ARGUMENTS`, to its own end or until UNTIL() holds; profile is None."""
    with subprocess.Popen([*wrapper, FATHOM, *map(str, arguments)], env=environment(cache),
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          **popen) as p:
        try:
            if until:
                interrupt(p, until)
            out, errors = output_of(p)
        except BaseException:
            p.kill()
            raise
    out = out.decode(errors="replace") if text else out
    return Result(p.returncode, out, errors.decode(errors="replace"), None)


def record(*arguments, status=0, **how):
    """Runs `fathom record ARGUMENTS` and reads the profile back. Ends the test if it does not exit with STATUS."""
    out = scratch("profile.pb.gz")
    r = fathom("record", "-o", out, *arguments, **how)
    if r.status != status or not os.path.exists(out):
        stop("record %s: exit status %d\n%s" % (" ".join(map(str, arguments)), r.status, r.stderr))
    return r._replace(profile=read_profile(out))


def read_profile(path):
    return pprof_read.Profile(path)


# ---- questions to a profile -----------------------------------------------------------------
def weight(samples):
    """Number of samples in the list (the first value of each)."""
    return sum(s["values"][0] for s in samples)


def of_pid(profile, pid):
    return [s for s in profile.samples if s["numbers"].get("pid") == pid]


def of_comm(profile, comm):
    return of_comm_of(profile.samples, comm)


def of_comm_of(samples, comm):
    """A comm is 15 bytes at most."""
    return [s for s in samples if s["labels"].get("comm") == comm[:15]]


def build_id_of(path):
    r = subprocess.run(["readelf", "-n", path], capture_output=True, text=True)
    return re.search(r"Build ID: ([0-9a-f]+)", r.stdout).group(1)


def content_hash_of(path):
    """OpenTelemetry's process.executable.build_id.htlhash."""
    with open(path, "rb") as f:
        content = f.read()
    ends = content[:4096] + content[-4096:] + len(content).to_bytes(8, "big")
    return hashlib.sha256(ends).hexdigest()[:32]


def is_kernel(frame):
    """The kernel, its modules and BPF programs use the upper half of the address space."""
    return frame["address"] >= 1 << 63


def user_frames(sample):
    return [f for f in sample["frames"] if not is_kernel(f)]


def user_names(sample):
    return [f["func"] for f in user_frames(sample)]


def leaf(sample):
    """The innermost user frame: an interrupt or a page fault may lie above it."""
    return user_frames(sample)[0]


def nameless(frame):
    """Whether the function's start stands in for its name, as in `libfoo.so+0x62f00`."""
    return not frame["system"] and bool(re.search(r"\+0x[0-9a-f]+$", frame["func"]))


def named(sample):
    """Whether the innermost user frame has its name. Debian strips the loader and libc of all names but
    the exported ones, so there an address is enough."""
    frame = leaf(sample)
    return bool(frame["func"] and not nameless(frame)) or bool(re.search(r"/(ld-linux|libc\.so|libc-|libm\.)[^/]*$", frame["mapping"]))


def enough(samples, seconds, hz, what):
    """A busy thread's samples: all of the time on an idle machine, a part of it on a busy one."""
    count = weight(samples)
    check(count >= seconds * hz * .05, "%s: %d samples" % (what, count))
    return count


def has_function(sample, name):
    return any(f["func"] == name for f in sample["frames"])


def chain_is(sample, chain):
    """Whether the user frames begin, innermost first, with the functions of CHAIN."""
    return user_names(sample)[:len(chain)] == chain


def plain(name):
    """A function name without parameters, template arguments and qualifiers."""
    name = name.split("(")[0]
    stripped = None
    while stripped != name:
        stripped, name = name, re.sub(r"<[^<>]*>", "", name)
    return name.strip().split("::")[-1]


# ---- files ----------------------------------------------------------------------------------
def another_build(source, path, number):
    """Copies the program or library SOURCE with a build ID made of NUMBER; returns the ID in hex."""
    old = bytes.fromhex(build_id_of(source))
    new = b"\xfa" + number.to_bytes(8, "big") + old[9:]
    with open(source, "rb") as f:
        content = f.read()
    if content.count(old) != 1:
        stop("%s has its build ID %d times" % (source, content.count(old)))
    with open(path, "wb") as f:
        f.write(content.replace(old, new))
    os.chmod(path, 0o755)
    return new.hex()
