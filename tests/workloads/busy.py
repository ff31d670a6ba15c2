# SPDX-License-Identifier: Apache-2.0
"""An interpreter at work: prints `ready`, then runs for argv[1] seconds."""
import sys
import time


def churn(x):
    for i in range(20000):
        x = (x * 31 + i) & 0xFFFFFFFF
    return x


end = time.monotonic() + float(sys.argv[1])
value = 1
print("ready", flush=True)
while time.monotonic() < end:
    value = churn(value)
