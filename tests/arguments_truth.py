# SPDX-License-Identifier: Apache-2.0
"""Arguments and results by DWARF, on programs that print their own: what was fetched must be the same,
call by call. Sites come from objdump."""
import os
import platform
import re
import subprocess
import sys

import latency_sites as sites

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")

BUILD = os.path.join(ROOT, os.environ.get("FATHOM_BUILD", "build"))
BUILT = os.path.join(BUILD, "tests/workloads")
SOURCES = os.path.join(ROOT, "tests/workloads")
DRIVE = os.path.join(BUILD, "tests/bpf/test_arguments")
FULL = bool(os.environ.get("FULL"))
C_FUNCTIONS = "ints|texts|people|parts|nothing|dropped|addressed|strings|values|kinds|views|bases|made|larger|mixes|structs|stacked"
VALUE = r"""("(?:[^"\\]|\\.)*"(?:\.\.\.\(\d+ bytes\))?|'[^']*'|&?\{[^}]*\}|[^,)}]*)"""
STRUCTS = platform.machine() == "x86_64"  # how they are passed by value is known
failures = []


def check(condition, text):
    print("%s: %s" % ("ok  " if condition else "FAIL", text))
    if not condition:
        failures.append(text)


def build(name, *command, **options):
    path = os.path.join(BUILT, name)
    subprocess.run([*command, "-o", path, *options.pop("sources", [])], check=True, **options)
    return path


def write_sites(program, pattern):
    loaded, lines = sites.segments(program), []
    for name, place in sorted(sites.functions(program).items(), key=lambda item: item[1]):
        if not re.match(pattern, name):
            continue
        lines += ["function %#x %s" % (place[0], name), "entry %#x" % sites.file_offset(loaded, place[0])]
        lines += ["return %#x" % sites.file_offset(loaded, address)
                  for address, instruction in sites.code_of(program, *place) if sites.is_return(instruction)]
    path = program + ".sites"
    with open(path, "w") as f:
        f.write("\n".join(lines) + "\n")
    return path


def drive(program, pattern, *arguments):
    """What was seen and what the program says, as lists of lines."""
    r = subprocess.run([DRIVE, "--drive", program, write_sites(program, pattern), program, *arguments],
                       capture_output=True, text=True, timeout=100)
    if r.returncode:
        sys.exit("%s: %s%s" % (program, r.stdout, r.stderr))
    lines = r.stdout.splitlines()
    return ([line[4:] for line in lines if line.startswith("saw ")],
            [line for line in lines if line.startswith(("call ", "left "))])


def without_unknown(seen, said):
    """What is said with a `?` for each value of which that was seen."""
    for name in re.findall(r"(\w+)=\?", seen):
        said = re.sub(r"\b%s=%s" % (name, VALUE), name + "=?", said, count=1)
    return said


def compare(what, seen, said):
    """The second of two rounds of the same calls."""
    if "1.17" in what:  # whose DWARF has no results
        seen, said = ([line for line in lines if line.startswith("call")] for lines in (seen, said))
    seen, said = seen[len(seen) // 2:], said[len(said) // 2:]
    check(len(seen) == len(said) and seen, "%s: %d calls and returns, %d said" % (what, len(seen), len(said)))
    for one, other in zip(seen, said):
        check(one == other, "%s: %s%s" % (what, one, "" if one == other else "\n      says " + other))


def check_compiled(what, pattern, *command, optimized=None):
    program = build("arguments-" + re.sub(r"\W+", "_", what), *command)
    # The name as the source has it, of a symbol.
    known_as = r" (?:_ZL?\d+)?(ints|points|%s)[\w.]*(?:\([^()]*\))?(?=[(:])" % C_FUNCTIONS
    name = lambda line: re.sub(known_as, r" \1", line, count=1)  # noqa: E731
    seen, said = drive(program, pattern)
    if optimized is not None:  # a compiler need not say where everything is
        unsaid = r"^(left (?:_ZL?\d+)?(?:dropped|addressed|made|larger|mixes)\b[^:]*): .*"
        said = [re.sub(unsaid, r"\1: ?", line) if pair.endswith(": ?") else line for pair, line in zip(seen, said)]
        said = [without_unknown(*pair) for pair in zip(seen, said)]
        known = sum(line.count("=") - line.count("=?") for line in seen)
        check(known >= optimized, "%s: %d values are known" % (what, known))
        results = [line for line in seen if re.match(r"left (_ZL?\d+)?(made|larger|mixes)\b", name(line))]
        check(not STRUCTS or not any(line.endswith(": ?") for line in results), "%s: %d structs are returned" % (what, len(results)))
    compare(what, [name(line) for line in seen], said)


def main(*kinds):
    """Runs each KIND, which calls check()."""
    if os.geteuid():
        print("needs root: BPF")
        sys.exit(77)
    os.makedirs(BUILT, exist_ok=True)
    for kind in kinds:
        kind()
    print("%d failed" % len(failures))
    sys.exit(bool(failures))
