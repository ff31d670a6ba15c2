# SPDX-License-Identifier: Apache-2.0
"""A way to a server on loopback that is as slow as it is told: bytes are passed on as they are, TLS included."""
import contextlib
import socket
import threading
import time

PIECE = 1024  # so that a rate is kept


class SlowWay:
    """Listens on .port. What the server sends comes DELAY seconds late, and no faster than RATE bytes a second."""

    def __init__(self, target_port):
        self.target_port, self.delay, self.rate, self.open = target_port, 0, 0, set()
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.port = self.listening.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listening.close()
        self.cut()

    def slow(self, delay=0, rate=0):
        self.delay, self.rate = delay, rate

    def cut(self):
        """Ends all connections."""
        for connection in list(self.open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client = self.listening.accept()[0]
                try:
                    server = socket.create_connection(("127.0.0.1", self.target_port))
                except OSError:
                    client.close()
                    continue
                self.open.update((client, server))
                for ends in ((client, server, False), (server, client, True)):
                    threading.Thread(target=self.pass_on, args=ends, daemon=True).start()

    def pass_on(self, source, target, slowly):
        with contextlib.suppress(OSError):
            while data := source.recv(PIECE if slowly else 1 << 16):
                if slowly:
                    time.sleep(self.delay + (len(data) / self.rate if self.rate else 0))
                target.sendall(data)
        self.open.discard(source)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
