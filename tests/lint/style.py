#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""House rules that a formatter cannot check. Prints file:line: message; exits 1 on a violation.

Violations: no SPDX line, files over 800 lines, functions over 100 lines or 7 parameters, banned
functions, unfinished-work marks, asserts with side effects, #ifdef inside a function, mutable
globals, a return before a variable with a cleanup is set. `--notes` also lists functions that are allowed but above the aim (60 lines, 5 parameters),
and the median function length.
"""
import os
import re
import statistics
import subprocess
import sys

MAX_FILE_LINES = 800
MAX_FUNCTION_LINES, AIM_FUNCTION_LINES = 100, 60
MAX_PARAMETERS, AIM_PARAMETERS = 7, 5

INHERITED = "programs that are executed inherit it: use the call that takes O_CLOEXEC"
BANNED = {
    "strcpy": "copies without a bound", "strcat": "appends without a bound",
    "sprintf": "use snprintf or buffer_printf", "vsprintf": "use vsnprintf",
    "gets": "reads without a bound", "strtok": "hidden state", "atoi": "cannot report errors",
    "atol": "cannot report errors", "atoll": "cannot report errors",
    "system": "no shell", "popen": "no shell", "tmpnam": "races", "mktemp": "races",
    "alloca": "no bound on the stack", "setjmp": "skips cleanups", "longjmp": "skips cleanups",
    **dict.fromkeys(("dup", "dup2", "pipe", "epoll_create", "mkstemp", "creat"), INHERITED),
    "bpf_get_stackid": "its ids collide and mix stacks",
}
BANNED_RE = re.compile(r"(?<![\w.>])(%s)\s*\(" % "|".join(BANNED))
# Spelled in two halves, so that this file does not report itself.
UNFINISHED_RE = re.compile(r"\b(TO" r"DO|FIX" r"ME|X" r"XX|HA" r"CK)\b")
ASSERT_RE = re.compile(r"\bassert\s*\((.*)\)\s*;")
SIDE_EFFECT_RE = re.compile(r"\+\+|--|(?<![=!<>])=(?!=)")
# A variable that its scope cleans up, without an initializer.
CLEANED_RE = re.compile(r"^\s*auto\w+(?:\([^)]*\))?\s+[^=;()]*?(\w+);")
GLOBAL_RE = re.compile(r"^(static\s+)?(?:volatile\s+)?(?!typedef|extern|return|struct\s+\w+\s*;|enum\b)"
                       r"(?:unsigned\s+|struct\s+|enum\s+)?\w+[\s*]+\w+(\[[^]]*\])*\s*(=|;)")
SPDX = "SPDX-License-Identifier:"
SPDX_SUFFIXES = (".c", ".h", ".cc", ".py", ".sh", ".go", ".proto", ".rs", ".js", ".awk")


def tracked():
    out = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"],
                         capture_output=True, text=True, check=True).stdout
    return sorted(f for f in out.splitlines() if os.path.isfile(f))


def without_comments(text):
    """The text with comments, strings and character constants blanked out; line numbers stay."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match.group(0))
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', blank, text,
                  flags=re.S)


def parameters_of(signature):
    inner = signature[signature.index("("):]
    depth = 0
    count = 1
    for c in inner:
        depth += (c == "(") - (c == ")")
        count += c == "," and depth == 1
    return count


class Functions:
    """Function bodies of kernel-style code: `{` and `}` are in column 0."""

    def __init__(self, lines):
        self.found = []  # (first line, last line, signature)
        start = None
        for number, line in enumerate(lines, 1):
            if line.startswith("{") and number > 1:
                signature = self.signature_before(lines, number - 1)
                start = (number, signature) if signature else None
            elif line.startswith("}") and start:
                self.found.append((start[0], number, start[1]))
                start = None

    @staticmethod
    def signature_before(lines, count):
        text = ""
        for line in reversed(lines[:count]):
            if not line.strip() or line.startswith(("}", "#")) or line.rstrip().endswith(";"):
                break
            text = line + " " + text
        return text if "(" in text and "=" not in text.split("(")[0] else None


class File:
    def __init__(self, path):
        self.path = path
        with open(path, errors="replace") as f:
            self.text = f.read()
        self.lines = self.text.splitlines()
        self.violations, self.notes, self.lengths = [], [], []

    def bad(self, line, message):
        self.violations.append("%s:%d: %s" % (self.path, line, message))

    def note(self, line, message):
        self.notes.append("%s:%d: %s" % (self.path, line, message))

    def check(self):
        script = self.text.startswith("#!")
        if (script or self.path.endswith(SPDX_SUFFIXES)) and SPDX not in "".join(self.lines[:3]):
            self.bad(1, "no %s line at the top" % SPDX)
        for number, line in enumerate(self.lines, 1):
            mark = UNFINISHED_RE.search(line)
            if mark and not self.path.endswith((".md", ".pb.gz", ".zst")):
                self.bad(number, "%s: finish it or leave it out" % mark.group(1))
        if self.path.endswith((".c", ".h")):
            self.check_c()

    def check_c(self):
        if len(self.lines) > MAX_FILE_LINES:
            self.bad(len(self.lines), "%d lines, at most %d" % (len(self.lines), MAX_FILE_LINES))
        code = without_comments(self.text).splitlines()
        workload = self.path.startswith("tests/workloads/")
        functions = Functions(code).found
        inside = set()
        for first, last, signature in functions:
            inside.update(range(first, last + 1))
            self.check_cleanups(first, code[first - 1:last])
            if not workload:
                self.check_function(first, last, signature)
        for number, line in enumerate(code, 1):
            self.check_line(number, line, number in inside)

    def check_function(self, first, last, signature):
        length = last - first - 1
        name = re.search(r"(\w+)\s*\(", signature)
        name = name.group(1) if name else signature
        self.lengths.append(length)
        if length > MAX_FUNCTION_LINES:
            self.bad(first, "%s() has %d lines, at most %d" % (name, length, MAX_FUNCTION_LINES))
        elif length > AIM_FUNCTION_LINES:
            self.note(first, "%s() has %d lines" % (name, length))
        count = parameters_of(signature)
        # libmicrohttpd dictates the parameters of its callbacks.
        if count > MAX_PARAMETERS and "struct MHD_Connection *" not in signature:
            self.bad(first, "%s() has %d parameters: use an options struct" % (name, count))
        elif count > AIM_PARAMETERS:
            self.note(first, "%s() has %d parameters" % (name, count))

    def check_cleanups(self, first, body):
        """The cleanup also runs at a return before the variable is set, on whatever was there."""
        for at, line in enumerate(body):
            cleaned = CLEANED_RE.match(line)
            if not cleaned:
                continue
            name = cleaned.group(1)
            use = re.search(r"\breturn\b|\b%s\b" % name, "\n".join(body[at + 1:]))
            if use and use.group(0) == "return":
                self.bad(first + at, "return before %s, which is cleaned up, is set" % name)

    def check_line(self, number, line, in_function):
        banned = BANNED_RE.search(line)
        test_code = self.path.startswith("tests/")
        if banned:
            name, why = banned.group(1), BANNED[banned.group(1)]
            if not test_code or (why != INHERITED and name not in ("system", "popen")):
                self.bad(number, "%s(): %s" % (name, why))
        asserted = ASSERT_RE.search(line)
        if asserted and SIDE_EFFECT_RE.search(asserted.group(1)):
            self.bad(number, "assert with a side effect")
        if test_code or self.path.startswith("bpf/"):
            return
        if in_function and re.match(r"\s*#\s*if", line):
            self.bad(number, "#if inside a function: what differs by architecture is a file")
        if not in_function and GLOBAL_RE.match(line) and not re.search(r"\bconst\b|sig_atomic_t|_Static_assert", line):
            self.bad(number, "mutable global: state hangs from the object")


def main():
    files = [File(p) for p in tracked()]
    for f in files:
        f.check()
    if "--notes" in sys.argv[1:]:
        for f in files:
            print("\n".join(f.notes), end="\n" if f.notes else "")
        lengths = [n for f in files if not f.path.startswith("tests/") for n in f.lengths]
        if lengths:
            print("%d functions, median %d lines, %.1f%% within %d" % (
                len(lengths), statistics.median(lengths),
                100 * sum(n <= AIM_FUNCTION_LINES for n in lengths) / len(lengths),
                AIM_FUNCTION_LINES))
    violations = [v for f in files for v in f.violations]
    print("\n".join(violations), end="\n" if violations else "")
    sys.exit(1 if violations else 0)


if __name__ == "__main__":
    main()
