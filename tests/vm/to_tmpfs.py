#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""In a guest: to_tmpfs.py PROGRAM… mounts copies on tmpfs over the programs and the libraries they need.

The guest's /usr is a network file system that a loaded host serves late. A sampler that waited for a file's
server would lose samples, so names and tables of what is there come too late, or not at all."""
import ctypes
import os
import re
import shutil
import subprocess
import sys

MS_BIND = 4096
OVER = "/tmp/over"


def files_of(program):
    listed = subprocess.run([program], env=dict(os.environ, LD_TRACE_LOADED_OBJECTS="1"), capture_output=True, text=True).stdout
    return [program] + re.findall(r"(/\S+) \(", listed)


def main():
    libc = ctypes.CDLL(None, use_errno=True)
    os.makedirs(OVER, exist_ok=True)
    for program in map(shutil.which, sys.argv[1:]):
        for file in map(os.path.realpath, files_of(program)):
            copy = os.path.join(OVER, file.replace("/", ","))
            if os.path.exists(copy):
                continue
            shutil.copy(file, copy)
            if libc.mount(copy.encode(), file.encode(), None, MS_BIND, None):
                raise OSError(ctypes.get_errno(), "mount", file)


main()
