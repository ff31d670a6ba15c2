#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# May run beside another test: it judges no shares of the machine's time.
"""pprof_sums.py: foreign files (tests/pprofcheck/foreign) keep their values. `fathom symbolize --profile`
preserves the values, labels and depth of each sample; `fathom upload` preserves the sum of each sample
type over all that it sends."""
import collections
import glob
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests"))
from pprof_read import Profile  # noqa: E402

FATHOM = os.path.join(ROOT, os.environ.get("FATHOM", "build/fathom"))
GO_KINDS = ("cpu", "heap", "allocs", "mutex", "block", "goroutine", "threadcreate")
TIMEOUT_S = 300
wrong = []


def check(condition, text):
    if not condition:
        wrong.append(text)
        print("FAIL " + text)


def run(*argv, cwd=None):
    r = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, timeout=TIMEOUT_S)
    if r.returncode:
        sys.exit("%s: exit status %d: %s" % (" ".join(argv), r.returncode, (r.stderr or r.stdout)[-1000:]))
    return r.stdout.strip()


def sums(profiles):
    profiles = list(profiles)
    totals = [0] * max(len(p.sample_types) for p in profiles)
    for p in profiles:
        for sample in p.samples:
            for i, value in enumerate(sample["values"]):
                totals[i] += value
    return totals


def content(profile):
    """Values, labels and addresses of each sample; frames may get more lines by inlining."""
    def addresses(sample):
        return tuple(f["address"] for f in sample["frames"] if not f["inlined"])
    return collections.Counter(
        (tuple(s["values"]), tuple(sorted(s["labels"].items())), tuple(sorted(s["numbers"].items())), addresses(s))
        for s in profile.samples)


def check_symbolize(path, name, scratch):
    out = os.path.join(scratch, "named.pb.gz")
    run(FATHOM, "symbolize", "--profile", path, "-o", out)
    before, after = Profile(path), Profile(out)
    check(sums([after]) == sums([before]), "symbolize %s: %s, was %s" % (name, sums([after]), sums([before])))
    check(after.sample_types == before.sample_types and after.period == before.period, "symbolize %s: types" % name)
    check(content(after) == content(before), "symbolize %s: samples are others" % name)


def check_upload(path, name, scratch):
    sent = os.path.join(scratch, "sent")
    os.makedirs(sent)
    run(FATHOM, "upload", "--remote-store-type=file", "--remote-store-address=" + sent, path)
    before = Profile(path)
    pieces = [Profile(p) for p in glob.glob(os.path.join(sent, "*.pb.gz"))]
    shutil.rmtree(sent)
    if not before.samples:
        return
    check(pieces and sums(pieces) == sums([before]),
          "upload %s: %s in %d pieces, was %s" % (name, pieces and sums(pieces), len(pieces), sums([before])))


def main():
    if not shutil.which("go"):
        print("no go")
        sys.exit(77)
    module = os.path.join(ROOT, "tests/pprofcheck")
    with tempfile.TemporaryDirectory() as scratch:
        program, files = os.path.join(scratch, "foreign"), os.path.join(scratch, "files")
        os.makedirs(files)
        run("go", "build", "-o", program, "./foreign", cwd=module)
        library = run("go", "list", "-m", "-f", "{{.Dir}}", "github.com/google/pprof", cwd=module)
        run(program, files, os.path.join(library, "profile/testdata"))
        names = sorted(os.listdir(files))
        check(all("go-%s.pb.gz" % kind in names for kind in GO_KINDS), "all kinds are there: %s" % names)
        samples = 0
        for name in names:
            path = os.path.join(files, name)
            samples += len(Profile(path).samples)
            check_symbolize(path, name, scratch)
            check_upload(path, name, scratch)
        check(any(v < 0 for s in Profile(os.path.join(files, "difference.pb.gz")).samples for v in s["values"]),
              "one has negative values")
    print("%d files, %d samples, %d differ" % (len(names), samples, len(wrong)))
    sys.exit(1 if wrong else 0)


main()
