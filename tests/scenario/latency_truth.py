# SPDX-License-Identifier: Apache-2.0
"""Programs that count and time their own calls, and what `fathom latency` says of them. Used by the scenario
and in guests."""
import json

from fathom import *

# What a call may take longer than its caller saw: the caller's second reading of the clock and the time
# between the return's probe and the caller come after it.
SLACK_NS = 0


def latency(*arguments, **how):
    return fathom("latency", *arguments, **how)


def report_of(result):
    """The last line of what was printed; the program's own lines come before."""
    check(result.status == 0, "fathom latency %s" % result.stderr.strip())
    return json.loads(result.stdout.strip().split("\n")[-1])


def truth_of(text):
    """{function: (calls, inner ns, outer ns, abandoned)} that the program printed."""
    return {name: tuple(map(int, rest)) for name, *rest in
            re.findall(r"^(\S+(?: as \S+)?) (\d+) (\d+) (\d+) (\d+)$", text, re.M)}


def by_name(functions):
    """Instances of a generic function have the same name, and are one here."""
    found = {}
    for f in functions:
        for name in {f["linkage_name"], f["name"]}:
            one = found.setdefault(name, {"calls": 0, "total_ns": 0, "buckets": []})
            found[name] = {key: one[key] + f[key] for key in one}
    return found


def compare(report, truth, probed, what):
    measured = by_name(report["functions"])
    for name, (calls, inner, outer, abandoned) in truth.items():
        f = measured.get(name)
        if name not in probed:
            check(not calls, "%s: %s cannot be probed, as it never returns" % (what, name))
            continue
        if not calls:
            continue
        check(f is not None, "%s: %s is measured" % (what, name))
        if f is None:
            continue
        check(f["calls"] == calls, "%s: %s: %d calls of %d" % (what, name, f["calls"], calls))
        check(sum(b["calls"] for b in f["buckets"]) == f["calls"], "%s: %s: its buckets have all calls" % (what, name))
        if calls and inner:
            check(inner <= f["total_ns"] + SLACK_NS, "%s: %s: %d ns are at least its own %d" % (what, name, f["total_ns"], inner))
        if calls and outer:
            check(f["total_ns"] <= outer, "%s: %s: %d ns are at most its caller's %d" % (what, name, f["total_ns"], outer))
    lost = {name: count for name, count in report["not_counted"].items() if count}
    wanted = sum(t[3] for name, t in truth.items() if name in probed)
    not_returned = lost.pop("not_returned", 0)
    check(not_returned == wanted, "%s: %d calls did not return, of %d" % (what, not_returned, wanted))
    # Each forked child returns from the call of its parent.
    forked = sum(t[0] for name, t in truth.items() if "forks" in name)
    no_entry = lost.pop("no_entry", 0)
    check(no_entry == forked, "%s: returns without an entry are those of forked children: %d of %d" % (what, no_entry, forked))
    check(not lost, "%s: nothing else is lost: %s" % (what, lost))
    fact("%s: %d calls exact" % (what, sum(t[0] for t in truth.values())))


def patterns(truth):
    return [text for name in truth for text in ("-u", name)]


def check_program(program, arguments, what):
    """From the first call to the last, all functions at once."""
    plain = subprocess.run([program, *arguments], stdout=subprocess.PIPE, text=True, check=True)
    names = truth_of(plain.stdout)
    check(len(names) >= 2, "%s: the program says what it did: %s" % (what, list(names)))
    dry = report_of(latency("--dry-run", "--json", *patterns(names), "--", program))
    probed = {name for f in dry["candidates"] if f["probed"] for name in (f["linkage_name"], f["name"])}
    r = latency("--json", *patterns(names), "--", program, *arguments)
    compare(report_of(r), truth_of(r.stdout), probed, what)
