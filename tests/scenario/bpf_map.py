# SPDX-License-Identifier: Apache-2.0
"""Reads BPF maps of another process through bpf(2): the kernel side's own counts of its samples, and what a hash has.
The descriptor keeps the map alive after its owner has ended."""
import ctypes
import errno
import os
import platform
import re
import struct

_NUMBER = {"x86_64": 321, "aarch64": 280}[platform.machine()]
_LOOKUP_ELEM, _MAP_GET_FD_BY_ID, _GET_INFO_BY_FD = 1, 14, 15
_HASH, _PERCPU_ARRAY = 1, 6
# What the programs count on each CPU; indices of words (enum abi_counter).
COUNTS = "cpu_counters"
TAKEN, RING_FULL, BPF_ERROR = 0, 4, 6
# How the goroutines of a process are read, by its ID.
RUNTIMES = "runtime_processes"[:15]
_libc = ctypes.CDLL(None, use_errno=True)


def _bpf(command, attributes):
    buffer = ctypes.create_string_buffer(attributes.ljust(128, b"\0"), 128)
    result = _libc.syscall(_NUMBER, command, buffer, 128)
    if result < 0:
        raise OSError(ctypes.get_errno(), "bpf(%d)" % command)
    return result


class _Map:
    """The map NAME (its first 15 bytes) that process PID has open."""
    kind = None

    def __init__(self, pid, name):
        self.fd = None
        for entry in os.listdir("/proc/%d/fdinfo" % pid):
            try:
                with open("/proc/%d/fdinfo/%s" % (pid, entry)) as f:
                    found = re.search(r"^map_id:\s*(\d+)", f.read(), re.M)
            except OSError:
                continue
            if found and self._open(int(found.group(1)), name):
                return
        raise OSError("process %d has no BPF map %s" % (pid, name))

    def _open(self, number, name):
        fd = _bpf(_MAP_GET_FD_BY_ID, struct.pack("<I", number))
        info = ctypes.create_string_buffer(80)
        _bpf(_GET_INFO_BY_FD, struct.pack("<IIQ", fd, len(info), ctypes.addressof(info)))
        kind, _, _, self.value_bytes = struct.unpack_from("<IIII", info)
        if kind == self.kind and info.raw[24:40].split(b"\0")[0] == name.encode():
            self.fd = fd
            return True
        os.close(fd)
        return False

    def close(self):
        os.close(self.fd)


class Hash(_Map):
    """A hash whose keys are 32-bit numbers."""
    kind = _HASH

    def has(self, key):
        key_memory = ctypes.create_string_buffer(struct.pack("<I", key), 4)
        value = ctypes.create_string_buffer(self.value_bytes)
        try:
            _bpf(_LOOKUP_ELEM, struct.pack("<IIQQ", self.fd, 0, ctypes.addressof(key_memory), ctypes.addressof(value)))
        except OSError as e:
            if e.errno != errno.ENOENT:
                raise
            return False
        return True


class PerCpuArray(_Map):
    kind = _PERCPU_ARRAY

    def sums(self, key=0):
        """The 64-bit words of an element, each summed over the CPUs."""
        with open("/sys/devices/system/cpu/possible") as f:
            cpus = int(f.read().strip().split("-")[-1]) + 1
        stride = (self.value_bytes + 7) // 8 * 8
        key_memory = ctypes.create_string_buffer(struct.pack("<I", key), 4)
        values = ctypes.create_string_buffer(cpus * stride)
        _bpf(_LOOKUP_ELEM, struct.pack("<IIQQ", self.fd, 0, ctypes.addressof(key_memory),
                                       ctypes.addressof(values)))
        words = struct.unpack("<%dQ" % (cpus * stride // 8), values.raw)
        return [sum(words[i::stride // 8]) for i in range(stride // 8)]
