# SPDX-License-Identifier: Apache-2.0
"""HTTP over a socket file."""
import http.client
import socket


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout=60):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def get(path, what, timeout=60):
    """The status and the body of the answer to GET WHAT at the socket PATH."""
    connection = UnixConnection(path, timeout)
    try:
        connection.request("GET", what)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()
