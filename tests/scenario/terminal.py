# SPDX-License-Identifier: Apache-2.0
"""A program on a terminal of its own: keys go in, the screen can be read. The emulator knows the
sequences that every VT100 descendant does; any other fails the test."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
import unicodedata

SEQUENCE = re.compile(r"\x1b\[(\??)([0-9;]*)([A-Za-z])")
TIMEOUT_S = 60


def columns_of(character):
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


class Screen:
    """The screen drawn by feed(). `unknown` lists sequences that not every terminal knows."""

    def __init__(self, columns, lines):
        self.unknown = []
        self.pending = ""
        self.alternate = self.hidden = False
        self.resize(columns, lines)

    def resize(self, columns, lines):
        self.columns, self.lines = columns, lines
        self.clear()

    def clear(self):
        self.cells = [[" "] * self.columns for _ in range(self.lines)]
        self.x = self.y = 0
        self.overflow = False

    def text(self):
        return ["".join(line).rstrip() for line in self.cells]

    def feed(self, text):
        text, self.pending = self.pending + text, ""
        at = 0
        while at < len(text):
            if text[at] == "\x1b":
                match = SEQUENCE.match(text, at)
                if not match and len(text) - at < 16:
                    self.pending = text[at:]
                    return
                if not match:
                    self.unknown.append(text[at:at + 16])
                    at += 1
                    continue
                self.sequence(*match.groups())
                at = match.end()
            else:
                self.character(text[at])
                at += 1

    def sequence(self, private, parameters, final):
        key = private + parameters + final
        if key == "H":
            self.x = self.y = 0
        elif key == "K":
            self.cells[self.y][self.x:] = [" "] * (self.columns - self.x)
        elif key in ("J", "2J"):
            self.cells[self.y][self.x:] = [" "] * (self.columns - self.x)
            for y in range(0 if key == "2J" else self.y + 1, self.lines):
                self.cells[y] = [" "] * self.columns
        elif key in ("?25l", "?25h"):
            self.hidden = key[-1] == "l"
        elif key in ("?1049h", "?1049l"):
            self.alternate = key[-1] == "h"
            self.clear()
        elif key not in ("m", "7m"):
            self.unknown.append(key)

    def character(self, c):
        if c == "\r":
            self.x = 0
        elif c == "\n":
            self.y += 1
            if self.y == self.lines:
                self.cells = self.cells[1:] + [[" "] * self.columns]
                self.y -= 1
        elif c < " " or c == "\x7f" or unicodedata.category(c) in ("Cc", "Cf"):
            self.unknown.append(c)
        elif columns_of(c):
            if self.x + columns_of(c) > self.columns:
                self.overflow = True
                return
            self.cells[self.y][self.x] = c
            for n in range(1, columns_of(c)):
                self.cells[self.y][self.x + n] = ""
            self.x += columns_of(c)


def shell(argv, env, statuses, orders):
    """Does what a shell with job control does for one job: runs it in the foreground, reports when it
    stops or ends, and continues it on request."""
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        os.tcsetpgrp(0, os.getpid())
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        os.close(statuses)
        os.close(orders)
        os.execve(argv[0], argv, env)
    os.write(statuses, b"pid %d\n" % pid)
    while True:
        status = os.waitpid(pid, os.WUNTRACED)[1]
        if not os.WIFSTOPPED(status):
            os.write(statuses, b"end %d\n" % os.waitstatus_to_exitcode(status))
            os.read(orders, 1)
            os._exit(0)
        os.tcsetpgrp(0, os.getpgrp())
        os.write(statuses, b"stop %d\n" % os.WSTOPSIG(status))
        if not os.read(orders, 1):
            os.kill(pid, signal.SIGKILL)
            continue
        os.tcsetpgrp(0, pid)
        os.killpg(pid, signal.SIGCONT)


class Terminal:
    def __init__(self, argv, env, columns=80, lines=24):
        status_read, status_write = os.pipe()
        order_read, self.orders = os.pipe()
        self.screen = Screen(columns, lines)
        self.raw = b""
        self.status_text = ""
        ready_read, ready_write = os.pipe()
        self.leader, self.master = pty.fork()
        if self.leader == 0:
            os.close(self.orders)
            os.read(ready_read, 1)
            try:
                shell(argv, env, status_write, order_read)
            finally:
                os._exit(127)
        os.close(status_write)
        os.close(order_read)
        self.statuses = status_read
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.modes = termios.tcgetattr(self.master)
        os.write(ready_write, b"g")
        os.close(ready_write)
        os.close(ready_read)
        self.pid = int(self.status(r"pid (\d+)").group(1))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        for fd in (self.orders, self.master, self.statuses):
            if fd >= 0:
                os.close(fd)
        os.waitpid(self.leader, 0)

    def pump(self, seconds=.1, read_screen=True):
        """Reads the available output, waiting at most SECONDS for some."""
        fds = [self.statuses] + [self.master] * (read_screen and self.master >= 0)
        for fd in select.select(fds, [], [], seconds)[0]:
            try:
                data = os.read(fd, 65536)
            except OSError:
                data = b""
            if fd == self.statuses:
                self.status_text += data.decode()
            elif data:
                self.raw += data
                self.screen.feed(data.decode(errors="replace"))

    def wait(self, condition, read_screen=True):
        """Whether CONDITION came true within a generous timeout."""
        end = time.monotonic() + TIMEOUT_S
        while True:
            found = condition()
            if found or time.monotonic() > end:
                return found
            self.pump(read_screen=read_screen)

    def status(self, pattern, read_screen=True):
        """The shell's next report that matches PATTERN."""
        match = self.wait(lambda: re.search(pattern, self.status_text), read_screen)
        if not match:
            raise AssertionError("no report %r: %r" % (pattern, self.status_text))
        self.status_text = self.status_text[match.end():]
        return match

    def shows(self, pattern):
        return self.wait(lambda: re.search(pattern, "\n".join(self.screen.text()), re.M))

    def keys(self, text):
        os.write(self.master, text.encode())

    def resize(self, columns, lines):
        self.screen.resize(columns, lines)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def resume(self):
        os.write(self.orders, b"c")

    def hang_up(self):
        os.close(self.master)
        self.master = -1

    def modes_are_back(self):
        return termios.tcgetattr(self.master) == self.modes
