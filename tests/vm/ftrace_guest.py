# SPDX-License-Identifier: Apache-2.0
"""What tests of kernel functions in a guest share: checks that go on after a failure, and ftrace's files."""
import os

TRACING = "/sys/kernel/tracing"
failures = []


def check(condition, text):
    print("%s: %s" % ("ok  " if condition else "FAIL", text), flush=True)
    if not condition:
        failures.append(text)


def tracing(name, text=None):
    """Reads the file of ftrace, or writes TEXT into it."""
    with open(os.path.join(TRACING, name), "w" if text is not None else "r") as f:
        return f.write(text) if text is not None else f.read()
