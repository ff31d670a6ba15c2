# SPDX-License-Identifier: Apache-2.0
"""fathom latency beside bpftrace and bcc's funclatency, all of which measure the same functions: how long
attaching and detaching takes, and what they count in a Go program that knows its own calls. Those two use the
kernel's return probes, which replace the return address on the stack.

bcc compiles its programs with a kernel's headers; where those of the running kernel are not installed, others
serve as well: BCC_KERNEL_SOURCE=DIR, with Debian's linux-headers-*-common and -amd64 copied into one folder."""
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

from fathom import FATHOM, built, environment, scratch

FUNCTIONS = 100
OURS_ALONE = 750  # functions, with 1,500 probes: the others would take minutes
GO_FUNCTION, GO_ARGUMENTS = "main.quick", ("200", "2000")
PATIENCE_S = 120


def funclatency():
    return shutil.which("funclatency-bpfcc") or shutil.which("funclatency")


def commands(program, functions, pattern):
    """{name: command} of what measures FUNCTIONS, which are those that the regular expression PATTERN names."""
    found = {"fathom": [FATHOM, "latency", *[a for f in functions for a in ("-u", "%s:%s" % (program, f))]]}
    if shutil.which("bpftrace"):
        text = " ".join('uprobe:%(p)s:"%(f)s" { @begin[tid] = nsecs; } uretprobe:%(p)s:"%(f)s" /@begin[tid]/ '
                        '{ @calls = count(); @ns = hist(nsecs - @begin[tid]); delete(@begin[tid]); }' % {"p": program, "f": f}
                        for f in functions)
        found["bpftrace"] = ["bpftrace", "-e", text]
    if funclatency():
        found["funclatency"] = [funclatency(), *(["-r"] if pattern else []), "%s:%s" % (program, pattern or functions[0])]
    return found


def calls_in(name, text):
    pattern = {"fathom": r"^[\d.]+m?s: (\d+) calls", "bpftrace": r"^@calls: (\d+)", "funclatency": r"count: (\d+)"}[name]
    found = re.search(pattern, text, re.M)
    return int(found.group(1)) if found else 0


class Breakpoints:
    """How many entries of functions are breakpoints in a process."""

    def __init__(self, pid, program, names):
        nm = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
        address = {f[2]: int(f[0], 16) for f in (line.split() for line in nm.splitlines()) if len(f) == 3}
        with open("/proc/%d/maps" % pid) as f:
            base = int(next(line for line in f if program in line).split("-")[0], 16)
        header = subprocess.run(["readelf", "-lW", program], capture_output=True, text=True, check=True).stdout
        lowest = min(int(a, 16) for a in re.findall(r"LOAD +\S+ (0x[0-9a-f]+)", header))
        self.at = [base - lowest + address[n] for n in names]
        self.memory = open("/proc/%d/mem" % pid, "rb", 0)

    def count(self):
        return sum(self.memory.seek(a) is not None and self.memory.read(1) == b"\xcc" for a in self.at)

    def wait(self, wanted):
        """Seconds until so many are there; None = not within PATIENCE_S."""
        begin = time.monotonic()
        while self.count() != wanted:
            if time.monotonic() - begin > PATIENCE_S:
                return None
            time.sleep(.005)
        return time.monotonic() - begin


class Tracer:
    """A run of one of the commands; `with` ends it."""

    def __init__(self, command):
        self.output = tempfile.TemporaryFile("w+", errors="replace")
        self.process = subprocess.Popen(command, stdout=self.output, stderr=subprocess.STDOUT,
                                        env=dict(environment(), PYTHONUNBUFFERED="1"),
                                        start_new_session=True)

    def wait(self, text):
        """Until it says so, or has ended."""
        while text not in self.text() and self.process.poll() is None:
            time.sleep(.05)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.output.close()

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            pass

    def text(self):
        self.output.seek(0)
        return self.output.read()


def many_functions(count):
    """A program with COUNT functions that it never calls."""
    source, program = scratch("many.c"), scratch("many-%d" % count)
    with open(source, "w") as f:
        f.write("#include <unistd.h>\nvolatile int x;\n")
        f.writelines("__attribute__((noinline, used)) void many_%d(void) { x = %d; }\n" % (i, i) for i in range(count))
        f.write("int main(void) { for (;;) pause(); }\n")
    subprocess.run(["gcc", "-O1", "-o", program, source], check=True)
    return program, ["many_%d" % i for i in range(count)]


def attach_and_detach(command, program, names):
    """Seconds for each; None = not within PATIENCE_S."""
    with subprocess.Popen([program]) as p:
        try:
            time.sleep(.2)
            breakpoints = Breakpoints(p.pid, program, names)
            with Tracer(command) as tracer:
                attach = breakpoints.wait(len(names))
                tracer.process.send_signal(signal.SIGINT)
                detach = breakpoints.wait(0)
        finally:
            p.kill()
    return attach, detach


def count_in_go(name, command, program):
    """(what it counted, what the program says of its calls; None = it did not come to its end). Those that can
    start the program do, so that no call is missed."""
    run = [program, *GO_ARGUMENTS]
    if name == "funclatency":
        with Tracer(command) as tracer:
            tracer.wait("Tracing")
            told = subprocess.run(run, capture_output=True, text=True).stdout
            tracer.interrupt()
            text = tracer.text()
    else:
        command = [*command, *(["--", *run] if name == "fathom" else ["-c", " ".join(run)])]
        text = told = subprocess.run(command, capture_output=True, text=True, env=environment()).stdout
    told = re.search(r"^%s (\d+)" % re.escape(GO_FUNCTION), told, re.M)
    return calls_in(name, text), int(told.group(1)) if told else None


def in_seconds(s):
    return "never" if s is None else "%.2f s" % s


def show_attaching(show, name, command, program, names):
    attach, detach = attach_and_detach(command, program, names)
    show("%s: attaching to %d functions" % (name, len(names)), in_seconds(attach), "detaching: " + in_seconds(detach))


def latency_peers(show):
    program, names = many_functions(FUNCTIONS)
    for name, command in commands(program, names, "^many_").items():
        show_attaching(show, name, command, program, names)
    program, names = many_functions(OURS_ALONE)
    show_attaching(show, "fathom", [FATHOM, "latency", "-u", program + ":many_*"], program, names)
    go = built("golatency", "golatency-static", "GOTOOLCHAIN=go1.21.13 GOFLAGS=-mod=mod CGO_ENABLED=0 go build -o {out} .")
    for name, command in commands(go, [GO_FUNCTION], None).items():
        counted, told = count_in_go(name, command, go)
        show("%s: calls counted in a Go program" % name, str(counted),
             "of %d" % told if told is not None else "the program was killed by it")
