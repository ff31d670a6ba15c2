#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A week of the local store from real windows: number of files, bytes, what opening costs, and what
merges of fifteen minutes and of a day cost.

store_week.py STORE: a directory with at least ten minutes of windows of an agent (windows of ten
seconds). All tens of minutes that it has are repeated in turn with shifted times; the files that an agent
would have merged by then are merged by the agent's own child, once, and repeated likewise. The more there
are, the nearer is the day to a real one, whose hours have different stacks. KEEP=1 keeps the week."""
import calendar
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time

FATHOM = os.environ.get("FATHOM", "build/fathom")
SLOT, HOUR, DAY = 600, 3600, 86400
MINUTES, REPLACE, SUM, BY_FILE, BY_SLICE = "2", "3", "0", "1", "4"
SLICE = 1200  # of a day, as agent/daemon/slices.c has it
TOO_LARGE = 3  # exit status, agent/server/merge/merge_wire.h


class TooLarge(Exception):
    """More than one merge may have in memory."""


def path_at(seconds, rest):
    return time.strftime("%Y-%m-%d/%Y%m%dT%H%M%SZ-", time.gmtime(seconds)) + rest


def merge(store, form, lines, out=None):
    """The agent's child, as agent/server/merge/merge.c starts it. Returns (CPU seconds, bytes)."""
    job = tempfile.TemporaryFile()
    job.write("".join(lines).encode())
    job.seek(0)
    result = open(out, "w+b") if out else tempfile.TemporaryFile()
    directory = os.open(store, os.O_RDONLY | os.O_DIRECTORY)

    def descriptors():
        held = [os.dup2(fd, 100 + i) for i, fd in enumerate((directory, job.fileno(), result.fileno()))]
        for i, fd in enumerate(held):
            os.dup2(fd, 3 + i)
        os.closerange(6, 200)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    status = subprocess.run(["fathom", "merge-stored", str(os.getpid()), form, "", "", ""], executable=FATHOM,
                            preexec_fn=descriptors, close_fds=False).returncode
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if status == TOO_LARGE:
        raise TooLarge
    if status:
        sys.exit("the merge ended with %d" % status)
    os.close(directory)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
            os.fstat(result.fileno()).st_size)


def windows_of(source):
    """Tens of minutes: [[(offset in the slot, path)]]."""
    found = []
    for folder, _, names in os.walk(source):
        for name in names:
            m = re.fullmatch(r"(\d{8}T\d{6})Z-(?:9|10)(?:\.\d+)?s\.pb\.gz", name)
            if m:
                at = calendar.timegm(time.strptime(m.group(1), "%Y%m%dT%H%M%S"))
                found.append((at, os.path.join(folder, name)))
    found.sort()
    return [[(10 * i, path) for i, (_, path) in enumerate(found[at:at + 60])]
            for at in range(len(found) % 60, len(found), 60)]


def link(source, store, path):
    to = os.path.join(store, path)
    os.makedirs(os.path.dirname(to), exist_ok=True)
    shutil.copyfile(source, to)


def line(path, minutes=0, wanted=None, minute=0, slice_ms=0):
    return "%x %x %x %x * %s\n" % (minutes if wanted is None else wanted, minutes, minute, slice_ms, path)


def make_week(slots, store):
    """Returns {kind: [(begin, path)]} and the CPU time of each kind of merge."""
    now = int(time.time()) // SLOT * SLOT
    files = {"windows": [], "minutes": [], "merged": []}
    cost = {"minutes": 0, "merged": 0}
    spare = tempfile.mkdtemp()
    bits = 0x3ff
    for number, windows in enumerate(slots):
        folder = "%s/%d" % (spare, number)
        os.mkdir(folder)
        for offset, source in windows:
            shutil.copyfile(source, "%s/%d" % (folder, offset))
        lines = [line("%d/%d" % (number, offset), minute=offset // 60) for offset, _ in windows]
        cost["minutes"] += merge(spare, MINUTES, lines, folder + "/minutes")[0] / len(slots)
        cost["merged"] += merge(spare, REPLACE, [line("%d/minutes" % number, bits)],
                                folder + "/merged")[0] / len(slots)

    def put(kind, begin, rest, source):
        path = path_at(begin, rest)
        link(source, store, path)
        files[kind].append((begin, path))
    for begin in range(now - 7 * DAY, now, SLOT):
        number = begin // SLOT % len(slots)
        if begin >= now - HOUR - SLOT:
            for offset, source in slots[number]:
                put("windows", begin + offset, "10s.pb.gz", source)
        elif begin >= now - DAY - SLOT:
            put("minutes", begin, "600s.minutes-%x.pb.gz" % bits, "%s/%d/minutes" % (spare, number))
        else:
            put("merged", begin, "600s.merged.pb.gz", "%s/%d/merged" % (spare, number))
    shutil.rmtree(spare)
    return now, bits, files, cost


def main():
    slots = windows_of(sys.argv[1])
    if not slots:
        sys.exit("ten minutes of windows of ten seconds are needed")
    os.umask(0o077)
    store = tempfile.mkdtemp(prefix="fathom-week-")
    now, bits, files, cost = make_week(slots, store)
    sizes = {kind: [os.path.getsize(os.path.join(store, p)) for _, p in list_] for kind, list_ in files.items()}
    for kind, of in sizes.items():
        print("%s: %d files, %.1f MB, %.1f kB each" % (kind, len(of), sum(of) / 1e6, sum(of) / len(of) / 1e3))
    print("a week: %d files, %.1f MB" % (sum(map(len, sizes.values())), sum(map(sum, sizes.values())) / 1e6))
    print("tens of minutes that are repeated: %d" % len(slots))
    print("merging ten minutes of windows: %.3f CPU s, to one %.3f CPU s" % (cost["minutes"], cost["merged"]))
    for what, seconds, form, name in (("fifteen minutes", 900, SUM, "summed"), ("fifteen minutes", 900, BY_FILE, "by file"),
                                      ("a day", DAY, SUM, "summed"), ("a day", DAY, BY_SLICE, "by slice")):
        chosen = sorted((b, p, minutes) for kind, minutes in (("windows", 0), ("minutes", bits))
                        for b, p in files[kind] if b >= now - seconds)
        lines = [line(p, minutes, slice_ms=b // SLICE * SLICE * 1000) for b, p, minutes in chosen]
        try:
            cpu, size = merge(store, form, lines)
            print("%s %s: %d files, %.3f CPU s, %.1f MB" % (what, name, len(lines), cpu, size / 1e6))
        except TooLarge:
            print("%s %s: %d files are more than one merge may be; the page asks for each half" % (what, name, len(lines)))
    if os.environ.get("KEEP"):
        print("store: %s" % store)
    else:
        shutil.rmtree(store)


main()
