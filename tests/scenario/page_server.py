# SPDX-License-Identifier: Apache-2.0
"""The flame graph page and recorded profiles, served as `fathom agent` serves them."""
import http.server
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGE = os.path.join(ROOT, "agent/server/serve/page")
INCLUDE = re.compile(r"^[ \t]*<!-- include: ([\w.-]+) -->$", re.M)
CSP = ("default-src 'none'; script-src 'nonce-{0}'; style-src 'nonce-{0}'; connect-src 'self'; "
       "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")


def assembled(nonce):
    """The page in one file, as the build makes it."""
    def content(match):
        name = match.group(1)
        with open(os.path.join(PAGE, name), encoding="utf-8") as f:
            tag = "style" if name.endswith(".css") else "script"
            return '<%s nonce="%s">\n%s</%s>' % (tag, nonce, f.read(), tag)
    with open(os.path.join(PAGE, "index.html"), encoding="utf-8") as f:
        return INCLUDE.sub(content, f.read())


class PageServer:
    """files: path → (name, time_ms, duration_ms, bytes), to be changed at any time."""

    def __init__(self, token=None, broken=False):
        self.files = {}
        self.latency = None  # the answer of /api/latency; None: the agent has no probes
        self.token = token
        self.broken = broken  # answers 500 to everything except the page
        self.requests = []
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                owner.answer(self)

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            def handle_error(self, request, client_address):
                if not isinstance(sys.exc_info()[1], ConnectionError):  # a browser that is gone
                    super().handle_error(request, client_address)

        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = "http://127.0.0.1:%d/" % self.server.server_address[1]

    def __enter__(self):
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def answer(self, handler):
        url = urllib.parse.urlsplit(handler.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        path = urllib.parse.unquote(url.path)
        self.requests.append(handler.path)
        if path == "/":
            return self.send(handler, 200, assembled("n0").encode(), "text/html; charset=utf-8")
        if self.broken:
            return self.send(handler, 500, b"broken\n", "text/plain")
        if self.token and handler.headers.get("Authorization") != "Bearer " + self.token:
            return self.send(handler, 401, b"a token is wanted\n", "text/plain")
        if path == "/status":
            return self.send_json(handler, self.status())
        if path == "/api/profiles":
            return self.send_json(handler, self.listing(int(query["from"]), int(query["to"])))
        if path == "/api/merged":
            return self.send_merged(handler, int(query["from"]), int(query["to"]))
        if path == "/api/latency":
            return self.send_json(handler, self.measured(int(query["from"]), int(query["to"])))
        name = path[len("/api/profiles/"):]
        if name in self.files:
            return self.send(handler, 200, self.files[name][3], "application/octet-stream")
        return self.send(handler, 404, b"not here\n", "text/plain")

    def status(self):
        return {"version": "0", "node": "test-node", "ready": True, "window_seconds": 10,
                "frequency_hertz": {"configured": 19, "effective": 19},
                "cpu": {"budget_percent": 1, "used_percent": 0.21},
                "memory": {"limit_bytes": 1 << 28, "resident_bytes": 40 << 20},
                "samples": {"taken": 1, "lost": 0},
                "probes": [{"name": "p", "state": "measured"}] if self.latency else [],
                "store": {"files": len(self.files), "bytes": 1, "limit_bytes": 1 << 30}}

    def measured(self, start, end):
        windows = [w for w in self.latency["windows"]
                   if w["time_ms"] < end and w["time_ms"] + w["duration_ms"] > start]
        return dict(self.latency, windows=windows)

    def listing(self, start, end):
        return [{"path": path, "name": f[0], "time_ms": f[1], "duration_ms": f[2], "bytes": len(f[3])}
                for path, f in sorted(self.files.items(), key=lambda item: item[1][1])
                if f[1] < end and f[1] + f[2] > start]

    def send_merged(self, handler, start, end):
        """What the agent's own child makes of the files."""
        from fathom import FATHOM
        with tempfile.TemporaryDirectory() as store:
            paths = [f["path"] for f in self.listing(start, end)]
            for path in paths:
                os.makedirs(os.path.dirname(os.path.join(store, path)), exist_ok=True)
                with open(os.path.join(store, path), "wb") as f:
                    f.write(self.files[path][3])
            with open(os.path.join(store, "job"), "w", encoding="utf-8") as f:
                f.write("".join("0 0 0 0 * " + path + "\n" for path in paths))
            command = 'exec "$0" merge-stored %d 1 "" "" "" 3<. 4<job 5>merged' % os.getpid()
            status = subprocess.run(["bash", "-c", command, FATHOM], cwd=store, check=False).returncode
            is_done = status == 0 or status > 100  # that many could not be read
            if not paths or not is_done:
                return self.send(handler, 404 if is_done else 500, b"not merged\n", "text/plain")
            with open(os.path.join(store, "merged"), "rb") as f:
                return self.send(handler, 200, f.read(), "application/octet-stream")

    def send_json(self, handler, value):
        self.send(handler, 200, json.dumps(value).encode(), "application/json")

    @staticmethod
    def send(handler, status, body, kind):
        try:
            handler.send_response(status)
            handler.send_header("Content-Type", kind)
            handler.send_header("Content-Length", str(len(body)))
            handler.send_header("Content-Security-Policy", CSP.format("n0"))
            handler.end_headers()
            handler.wfile.write(body)
        except (BrokenPipeError, ConnectionResetError):
            pass


def now_ms():
    return int(time.time() * 1000)
