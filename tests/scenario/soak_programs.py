# SPDX-License-Identifier: Apache-2.0
"""The programs of the soak, all built by importing this: a machine in qemu cannot build them."""
from attacks import *

storm = built("execstorm.c", "execstorm-static", C.replace("gcc", "gcc -static", 1))
burst = built("burst.c")
churn = built("dlchurn.c", recipe=C + " -ldl")
plugin = built("dlchurn.c", "plugin.so", C.replace("-O1", "-O1 -DPLUGIN -shared -fPIC", 1))
go = built("goid", "goid-stripped",
           "CGO_ENABLED=0 GOFLAGS=-mod=mod go build -ldflags='-s -w' -o {out} .")
built("hangfs.c")
