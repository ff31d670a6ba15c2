# SPDX-License-Identifier: Apache-2.0
"""A copy of the project for building and testing mutants, and the lines that each test executes there.

The copy is DIR/tree. build/plain in it is the normal build; build/coverage is clang's, with counters in
a mapped file, so that processes that are killed or call _exit() count too.
"""
import concurrent.futures
import glob
import hashlib
import json
import os
import resource
import shutil
import signal
import subprocess
import tempfile
import time

JOBS = min(2, os.cpu_count() or 1)
PLAIN, COVERAGE, SANITIZED = "build/plain", "build/coverage", "build/sanitized"
COVERAGE_CC = ("clang -Wno-everything -fprofile-instr-generate -fcoverage-mapping "
               "-mllvm -runtime-counter-relocation")
BUILD_TIMEOUT_S = 1800
SANITIZER_OPTIONS = {"ASAN_OPTIONS": "detect_leaks=1:abort_on_error=1:allocator_may_return_null=1",
                     "UBSAN_OPTIONS": "halt_on_error=1"}
# Folders that no program is built from.
NOT_BUILT = ("docs/", "tests/mutation/", "tests/fuzz/", "tests/accuracy/", "tests/vm/", "tests/bench/")
# A mutant may loop for ever: a test that takes this much longer than normal is killed.
SLOWER, SLOWER_S, SCENARIO_SLOWER_S = 5, 5, 30
SANITIZED_SLOWER = 5
BASELINE_TIMEOUT_S = {"unit": 120, "bpf": 120, "scenario": 120}
MEMORY_BYTES = 8 << 30
# A mutant may signal foreign processes and unlink foreign files. So as root a test gets its own PID
# namespace (not as its first process) and /tmp, and sees the machine's files read-only. A scenario's
# agent needs the machine's process IDs.
NAMESPACES = {"unit": ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"],
              "bpf": ["unshare", "--mount"], "scenario": ["unshare", "--mount"]}
READ_ONLY = """
mount --bind "$1" "$1" && mount -o remount,bind,ro / && mount -t tmpfs -o size=2g tmpfs /tmp || exit 125
cd "$2" && shift 2
"$@"
exit $?
"""


class Failed(Exception):
    """The check cannot go on; the text says why."""


def run(argv, cwd, timeout, env=None, limits=False):
    """Exit status (None: a timeout) and output. Kills whatever the command left running."""
    p = subprocess.Popen(argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, start_new_session=True,
                         preexec_fn=limit_process if limits else None)
    status = None
    try:
        out = p.communicate(timeout=timeout)[0]
        status = p.returncode
    except subprocess.TimeoutExpired:
        kill_group(p.pid)
        out = p.communicate()[0]
    kill_group(p.pid)
    return status, out.decode(errors="replace")


def limit_process():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def kill_group(pid):
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


class Test:
    """A unit or BPF test program, or a scenario."""

    def __init__(self, suite, name):
        self.suite, self.name = suite, name
        self.seconds = None  # without a mutant; None: it fails even then and is not used
        self.sanitized = False  # whether it passes with the sanitizers
        self.lines = {}  # path -> set of the lines that it executes

    def key(self):
        return self.suite + "/" + self.name

    def program(self, build):
        return os.path.join(build, "tests", self.suite, self.name)

    def target(self, build):
        """The target for make."""
        return os.path.join(build, "fathom") if self.suite == "scenario" else self.program(build)

    def timeout(self):
        return self.seconds * SLOWER + (SCENARIO_SLOWER_S if self.suite == "scenario" else SLOWER_S)


class Tree:
    def __init__(self, root, directory, say):
        self.root, self.directory, self.say = root, os.path.abspath(directory), say
        self.path = os.path.join(self.directory, "tree")
        self.scratch = os.path.join(self.directory, "scratch")
        os.makedirs(self.path, exist_ok=True)
        os.makedirs(self.scratch, exist_ok=True)
        self.tests = []

    # ---- the copy ---------------------------------------------------------------------------
    def copy(self):
        """Unchanged files keep their mtime, so that make rebuilds only what changed."""
        listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=self.root,
                                capture_output=True, text=True, check=True).stdout.split("\n")
        paths = sorted(p for p in listed if p and os.path.isfile(os.path.join(self.root, p)))
        digest = hashlib.sha256()
        for path in paths:
            with open(os.path.join(self.root, path), "rb") as f:
                content = f.read()
            if not path.startswith(NOT_BUILT) and not path.endswith(".md"):
                digest.update(("%s\0%d\0" % (path, len(content))).encode() + content)
            self.copy_file(path, content)
        self.remove_others(set(paths))
        self.digest = digest.hexdigest()
        return paths

    def copy_file(self, path, content):
        to = os.path.join(self.path, path)
        try:
            with open(to, "rb") as f:
                if f.read() == content:
                    return
        except FileNotFoundError:
            os.makedirs(os.path.dirname(to), exist_ok=True)
        with open(to, "wb") as f:
            f.write(content)
        shutil.copymode(os.path.join(self.root, path), to)

    def remove_others(self, paths):
        for directory, folders, names in os.walk(self.path):
            if directory == self.path and "build" in folders:
                folders.remove("build")
            for name in names:
                path = os.path.join(directory, name)
                if os.path.relpath(path, self.path) not in paths:
                    os.unlink(path)

    # ---- building ---------------------------------------------------------------------------
    def make(self, build, targets, timeout=BUILD_TIMEOUT_S):
        """Make's exit status and output."""
        env = dict(os.environ, LDLIBS="-lm")
        flags = ["CFLAGS=-O2 -g", "WERROR="]
        if build == SANITIZED:
            flags.append("SAN=address,undefined")
        if build == COVERAGE:
            flags = ["CFLAGS=-O1", "WERROR=", "CC=" + COVERAGE_CC]
        return run(["make", "-s", "-j%d" % JOBS, "--no-print-directory", "O=" + build] + flags + targets,
                   self.path, timeout, env)

    def find_tests(self, scenarios):
        for suite in ("unit", "bpf"):
            for path in sorted(glob.glob(os.path.join(self.path, "tests", suite, "test_*.c"))):
                self.tests.append(Test(suite, os.path.basename(path)[:-2]))
        self.tests += [Test("scenario", name) for name in sorted(scenarios)]

    def build(self, build):
        wanted = [t for t in self.tests if build != SANITIZED or t.suite == "unit"]
        status, out = self.make(build, sorted({t.target(build) for t in wanted} | {build + "/fathom"}))
        if status != 0:
            raise Failed("building %s failed:\n%s" % (build, "\n".join(out.splitlines()[-30:])))

    def code_of(self, path):
        """An object's bytes without debug information, which contains each token's column."""
        out = os.path.join(self.directory, "code.o")
        if run(["objcopy", "--strip-debug", path, out], self.path, 60)[0] != 0:
            raise Failed("objcopy %s failed" % path)
        with open(out, "rb") as f:
            return f.read()

    # ---- running ----------------------------------------------------------------------------
    def run_test(self, test, build=PLAIN, timeout=None, profile=None):
        """Exit status (None: a timeout) and output."""
        scratch = tempfile.mkdtemp(dir=self.scratch)
        env = dict(os.environ, TMPDIR=scratch, CMOCKA_MESSAGE_OUTPUT="TAP", FATHOM=build + "/fathom",
                   FATHOM_BUILD=PLAIN, PYTHONDONTWRITEBYTECODE="1", FULL="", **SANITIZER_OPTIONS)
        if profile:
            env["LLVM_PROFILE_FILE"] = profile + "/%p%c.profraw"
        where = os.path.join("tests/scenario", test.name) if test.suite == "scenario" else test.program(build)
        argv = [os.path.join(self.path, where)]
        if os.geteuid() == 0:
            argv = NAMESPACES[test.suite] + ["sh", "-c", READ_ONLY, "sh", self.directory, self.path] + argv
        result = run(argv, self.path, timeout or test.timeout(), env, limits=test.suite == "unit" and build != SANITIZED)
        shutil.rmtree(scratch, ignore_errors=True)
        return result

    def measure(self, sanitized):
        """Measures the duration and executed lines of each test; kept until a file changes."""
        kept = os.path.join(self.directory, "tests.json")
        facts = {}
        try:
            with open(kept) as f:
                stored = json.load(f)
            facts = stored["tests"] if stored["digest"] == self.digest else {}
        except (OSError, ValueError, KeyError):
            pass
        wanted = [t for t in self.tests if t.key() not in facts]
        for suite in NAMESPACES:
            with concurrent.futures.ThreadPoolExecutor(JOBS if suite == "unit" else 1) as pool:
                tests = [t for t in wanted if t.suite == suite]
                for test, fact in zip(tests, pool.map(self.measure_one, tests)):
                    self.say("measured " + test.key())
                    facts[test.key()] = fact
        if sanitized:
            self.measure_sanitized(facts)
        for test in self.tests:
            test.seconds = facts[test.key()]["seconds"]
            test.sanitized = facts[test.key()].get("sanitized", False)
            test.lines = {path: set(lines) for path, lines in facts[test.key()]["lines"].items()}
        with open(kept, "w") as f:
            json.dump({"digest": self.digest, "tests": facts}, f)
        return [t for t in self.tests if t.seconds is None]

    def measure_sanitized(self, facts):
        def passes(test):
            return self.run_test(test, SANITIZED, BASELINE_TIMEOUT_S["unit"] * SANITIZED_SLOWER)[0] == 0
        tests = [t for t in self.tests if t.suite == "unit" and "sanitized" not in facts[t.key()]]
        with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
            for test, passed in zip(tests, pool.map(passes, tests)):
                self.say("%s %s with sanitizers" % (test.key(), "passes" if passed else "fails"))
                facts[test.key()]["sanitized"] = passed

    def measure_one(self, test):
        timeout = BASELINE_TIMEOUT_S[test.suite]
        begin = time.monotonic()
        status, out = self.run_test(test, PLAIN, timeout)
        seconds = time.monotonic() - begin
        if status != 0:
            self.say("%s: exit status %s without a mutant:\n%s" %
                     (test.key(), status, "\n".join(out.splitlines()[-10:])))
            return {"seconds": None, "lines": {}}
        profile = tempfile.mkdtemp(dir=self.directory)
        self.run_test(test, COVERAGE, timeout * 3, profile)
        lines = self.executed_lines(test, profile)
        shutil.rmtree(profile, ignore_errors=True)
        return {"seconds": seconds, "lines": lines}

    def executed_lines(self, test, profile):
        """Executed lines of the test's program, and of the built program if the test runs it."""
        raw = glob.glob(profile + "/*.profraw")
        lines = {}
        merged = profile + "/merged"
        if not raw or run(["llvm-profdata", "merge", "-o", merged] + raw, self.path, 120)[0] != 0:
            return lines
        programs = {test.target(COVERAGE), COVERAGE + "/fathom"}
        for program in programs:
            status, out = run(["llvm-cov", "export", "-format=lcov", program, "-instr-profile=" + merged],
                              self.path, 120)
            if status == 0:
                self.add_lines(out, lines)
        return {path: sorted(found) for path, found in lines.items()}

    def add_lines(self, lcov, lines):
        path = None
        for row in lcov.splitlines():
            if row.startswith("SF:"):
                path = os.path.relpath(row[3:], self.path)
            elif row.startswith("DA:") and path.endswith(".c") and not path.startswith("tests/"):
                line, count = row[3:].split(",")[:2]
                if int(count):
                    lines.setdefault(path, set()).add(int(line))
