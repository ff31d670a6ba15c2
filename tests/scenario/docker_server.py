# SPDX-License-Identifier: Apache-2.0
"""The Docker Engine API as the agent sees it, on a Unix socket: misbehaves as `mode[path]` says, "ok", a status, or
one of the functions below."""
import http.server
import urllib.parse

from cri_server import *

VERSION = {"Platform": {"Name": "Docker Engine"}, "Components": [{"Name": "Engine", "Version": "28.0"}],
           "ApiVersion": "1.48", "Version": "28.0"}
EVENTS = {"create", "start", "die", "destroy", "rename"}


def listed(id, name, labels={}, image="app:1"):
    """An element of /containers/json, as Docker writes it."""
    return {"Id": id, "Names": ["/" + name], "Image": image, "ImageID": "sha256:" + "0" * 64, "Command": "/app",
            "Created": 1, "Ports": [], "Labels": labels, "State": "running", "Status": "Up 2 hours",
            "HostConfig": {"NetworkMode": "bridge"}, "NetworkSettings": {"Networks": {"bridge": {"Links": None}}},
            "Mounts": []}


class DockerServer:
    """`with` ends it."""

    def __init__(self, path):
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def address_string(self):
                return "unix"

            def log_message(self, *_):
                pass

            def do_GET(self):
                with contextlib.suppress(OSError):
                    server.answer(self)

        class Listening(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
            daemon_threads = True
            block_on_close = False

            def handle_error(self, *_):
                pass  # clients that break off are part of the test

        if os.path.exists(path):
            os.unlink(path)
        self.changed, self.calls = threading.Condition(), collections.Counter()
        self.containers, self.events, self.streams = [], [], 0
        self.mode = {"/version": "ok", "/containers/json": "ok", "/events": "ok"}
        self.listening = Listening(path, Handler)
        threading.Thread(target=self.listening.serve_forever, args=(.05,), daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end_streams()
        self.listening.shutdown()
        self.listening.server_close()

    # ---- what the test does with it ----
    def tell(self, *containers):
        self.containers = list(containers)

    def event(self, action="start", **more):
        with self.changed:
            self.events.append({"Type": "container", "Action": action, "status": action, **more})
            self.changed.notify_all()

    def end_streams(self):
        with self.changed:
            self.streams += 1
            self.changed.notify_all()

    # ---- what it answers ----
    def answer(self, h):
        url = urllib.parse.urlparse(h.path)
        q = dict(urllib.parse.parse_qsl(url.query, strict_parsing=True)) if url.query else {}
        with self.changed:
            self.calls[url.path] += 1
        mode = self.mode.get(url.path, 404)
        if callable(mode):
            return mode(h)
        if mode != "ok":
            return send(h, mode, {"message": "not \x01 today"})
        if url.path == "/version":
            return send(h, 200, VERSION)
        if url.path == "/events":
            return self.stream(h, json.loads(q["filters"]))
        return send(h, 200 if q == {"all": "true"} else 400, self.containers)

    def stream(self, h, filters):
        if filters["type"] != ["container"] or not EVENTS <= set(filters["event"]):
            return send(h, 400, {"message": "these filters would not do"})
        with self.changed:
            at, streams = len(self.events), self.streams
        h.send_response(200)
        h.send_header("Transfer-Encoding", "chunked")
        h.end_headers()
        while True:
            with self.changed:
                self.changed.wait_for(lambda: self.streams != streams or len(self.events) > at)
                new, at = self.events[at:], len(self.events)
                ended = self.streams != streams
            for event in new:
                chunk(h, (json.dumps(event) + "\n").encode())
            if ended:
                h.wfile.write(b"0\r\n\r\n")
                h.close_connection = True
                return


def send(h, status, value):
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    h.send_response(status)
    h.send_header("Content-Length", str(len(body)))
    h.end_headers()
    h.wfile.write(body)


def chunk(h, data):
    h.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
    h.wfile.flush()


# ---- modes ----------------------------------------------------------------------------------
def hangs_after_request(h):
    time.sleep(3600)


def is_no_array(h):
    send(h, 200, {"items": []})


def is_html(h):
    send(h, 200, b"<html>login</html>")


def breaks_off(h):
    h.send_response(200)
    h.send_header("Content-Length", "1000")
    h.end_headers()
    h.wfile.write(b'[{"Id":"half')
    h.close_connection = True


def ends_too_early(h):
    send(h, 200, b'[{"Id":"half')


def is_deep(h):
    send(h, 200, b'[{"Labels":' + b"[" * 1000000)


def never_ends(h):
    h.send_response(200)
    h.send_header("Transfer-Encoding", "chunked")
    h.end_headers()
    chunk(h, b"[{}")
    while True:
        chunk(h, b"," + b'{"Id":"%s"}' % (b"x" * 100000))


def drips_slowly(h):
    h.send_response(200)
    h.send_header("Transfer-Encoding", "chunked")
    h.end_headers()
    chunk(h, b"[")
    while True:
        time.sleep(.2)
        chunk(h, b" ")


def floods_with_events(h):
    h.send_response(200)
    h.send_header("Transfer-Encoding", "chunked")
    h.end_headers()
    while True:
        chunk(h, b'{"Type":"container","Action":"start"}\n' * 1000)
