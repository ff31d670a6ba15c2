# SPDX-License-Identifier: Apache-2.0
"""HTTP requests without end by another user of this machine."""
from agent import *

OTHER = 12345
FLOODS = 8


def flood(port, path):
    request = b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % path * 50
    while True:
        try:
            with socket.socket() as s:
                s.connect(("127.0.0.1", port))
                s.settimeout(.5)
                while path:
                    s.sendall(request)
                    if not s.recv(1 << 20):
                        break
        except OSError:
            pass


class Flood:
    """A process of another user, of that nice value; `with` ends it."""

    def __init__(self, port, nice=0):
        ready, told = os.pipe()
        self.parent = os.getpid()
        self.pid = os.fork()
        if not self.pid:
            self.run(port, nice, told)
        os.close(told)
        check(os.read(ready, 1) == b"f", "%d connections of another user flood it" % FLOODS)
        os.close(ready)

    def run(self, port, nice, told):
        try:
            os.nice(nice)
            os.setgroups([])
            os.setgid(OTHER)
            os.setuid(OTHER)
            for path in (b"/", b"/metrics", b"/healthy", b"") * (FLOODS // 4):
                threading.Thread(target=flood, args=(port, path), daemon=True).start()
            os.write(told, b"f")
            while os.getppid() == self.parent:
                time.sleep(1)
        finally:
            os._exit(1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
