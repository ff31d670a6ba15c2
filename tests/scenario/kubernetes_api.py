# SPDX-License-Identifier: Apache-2.0
"""The Kubernetes API server as the agent sees it (list and watch of pods over TLS, with bearer tokens), which
misbehaves as `mode["list"]` and `mode["watch"]` say: a status, or the name of a function below."""
import http.server
import ssl
import urllib.parse

from agent import *

NODE = "node-1"


def pod(name, uid, labels=None, annotations=None, owner=None, namespace="prod"):
    """As the server sends the metadata of one."""
    metadata = {"name": name, "namespace": namespace, "uid": uid, "labels": labels or {},
                "annotations": annotations or {}, "creationTimestamp": "2026-01-01T00:00:00Z",
                "managedFields": [{"manager": "kubelet", "fieldsV1": {"f:metadata": {"f:labels": {".": {}}}}}]}
    if owner:
        metadata["ownerReferences"] = [{"apiVersion": "apps/v1", "kind": owner[0], "name": owner[1],
                                        "uid": "o-" + uid, "controller": True, "blockOwnerDeletion": True}]
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}


def make_certificates(folder):
    """An authority, and a server's certificate for 127.0.0.1 that it signs."""
    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)
    for name in ("ca", "server"):
        openssl("ecparam", "-genkey", "-name", "prime256v1", "-out", name + ".key")
    openssl("req", "-x509", "-new", "-key", "ca.key", "-subj", "/CN=cluster", "-days", "1", "-out", "ca.crt")
    openssl("req", "-new", "-key", "server.key", "-subj", "/CN=apiserver", "-out", "server.csr")
    with open(os.path.join(folder, "names"), "w") as f:
        f.write("subjectAltName=IP:127.0.0.1\n")
    openssl("x509", "-req", "-in", "server.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "1",
            "-extfile", "names", "-out", "server.crt")


class Listener(http.server.ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request, address):
        pass  # clients that break off are part of the test


class ApiServer:
    """`with` ends it."""

    def __init__(self, name="api-server"):
        self.folder = scratch(name)
        self.account = os.path.join(self.folder, "account")
        os.makedirs(self.account)
        make_certificates(self.folder)
        shutil.copy(os.path.join(self.folder, "ca.crt"), self.account)
        self.changed = threading.Condition()
        self.pods, self.version, self.events = {}, 100, []  # events: (version, event)
        self.mode = {"list": "ok", "watch": "ok"}
        self.requests = []  # (verb, parameters, headers)
        self.expired = 0  # no watch may begin before this version
        self.ignores_limit, self.watches, self.elsewhere, self.ending = False, 0, 0, 0
        self.port, self.listener = 0, None
        self.tokens = set()
        self.give_token("token-1")
        self.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def environment(self):
        return {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(self.port)}

    # ---- what the test does with it ----
    def start(self):
        self.listener = Listener(("127.0.0.1", self.port), self.handler())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(os.path.join(self.folder, "server.crt"), os.path.join(self.folder, "server.key"))
        self.listener.socket = context.wrap_socket(self.listener.socket, server_side=True, do_handshake_on_connect=False)
        self.port = self.listener.server_address[1]
        threading.Thread(target=self.listener.serve_forever, args=(.05,), daemon=True).start()

    def stop(self):
        self.end_watches()
        self.listener.shutdown()
        self.listener.server_close()

    def give_token(self, token):
        """The next one, as kubelet does: the file is replaced."""
        self.tokens.add(token)
        path = os.path.join(self.account, "token")
        with open(path + ".new", "w") as f:
            f.write(token)
        os.rename(path + ".new", path)

    def change(self, type, value):
        with self.changed:
            self.version += 1
            value = json.loads(json.dumps(value))
            value["metadata"]["resourceVersion"] = str(self.version)
            key = value["metadata"]["uid"]
            if type == "DELETED":
                self.pods.pop(key, None)
            else:
                self.pods[key] = value
            self.events.append((self.version, {"type": type, "object": value}))
            self.changed.notify_all()

    def say(self, event):
        """To every watch."""
        with self.changed:
            self.version += 1
            self.events.append((self.version, event))
            self.changed.notify_all()

    def expire(self):
        """Watches end, and their place is forgotten."""
        self.say({"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired",
                                              "message": "too old resource version"}})
        with self.changed:
            self.expired = self.version + 1
            self.version += 1

    def end_watches(self):
        with self.changed:
            self.ending += 1
            self.changed.notify_all()

    def count(self, verb):
        with self.changed:
            return sum(r[0] == verb for r in self.requests)

    def wait_request(self, verb, what, after):
        return wait_until(lambda: self.count(verb) > after, what)

    def last(self, verb):
        with self.changed:
            return [r for r in self.requests if r[0] == verb][-1]

    # ---- what it answers ----
    def handler(self):
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                with contextlib.suppress(OSError):
                    server.answer(self)
        return Handler

    def answer(self, h):
        url = urllib.parse.urlparse(h.path)
        q = dict(urllib.parse.parse_qsl(url.query, strict_parsing=True))
        if url.path != "/api/v1/pods" or q.get("fieldSelector") != "spec.nodeName=" + NODE:
            self.elsewhere += 1
            return refuse(h, 404, "not here")
        verb = "watch" if q.get("watch") else "list"
        with self.changed:
            self.requests.append((verb, q, dict(h.headers)))
        token = (h.headers.get("Authorization") or "").removeprefix("Bearer ")
        mode = self.mode[verb]
        if token not in self.tokens:
            return refuse(h, 401, "Unauthorized")
        if callable(mode):
            return mode(h)
        if mode != "ok":
            return refuse(h, mode, "mode %s" % mode)
        return self.watch(h, q) if verb == "watch" else self.list(h, q)

    def list(self, h, q):
        with self.changed:
            pods = [self.pods[k] for k in sorted(self.pods)]
            version = self.version
        first = int(q.get("continue") or 0)
        last = len(pods) if self.ignores_limit else min(len(pods), first + int(q["limit"]))
        metadata = {"resourceVersion": str(version)}
        if last < len(pods):
            metadata["continue"] = str(last)
        send(h, 200, {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
                      "items": pods[first:last]})

    def watch(self, h, q):
        at = int(q["resourceVersion"])
        with self.changed:
            if at < self.expired:
                expired = True
            else:
                expired, ending = False, self.ending
                self.watches += 1
        if expired:
            return refuse(h, 410, "too old resource version")
        h.send_response(200)
        h.send_header("Content-Type", "application/json")
        h.send_header("Transfer-Encoding", "chunked")
        h.end_headers()
        while True:
            with self.changed:
                self.changed.wait_for(lambda: self.ending != ending or self.version > at, .5)
                new = [e for v, e in self.events if v > at]
                at, ended = self.version, self.ending != ending
            for event in new:
                chunk(h, (json.dumps(event) + "\n").encode())
            if ended:
                h.wfile.write(b"0\r\n\r\n")
                h.close_connection = True
                return


def send(h, status, value, **headers):
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    h.send_response(status)
    h.send_header("Content-Length", str(len(body)))
    for name, text in headers.items():
        h.send_header(name.replace("_", "-"), text)
    h.end_headers()
    h.wfile.write(body)


def refuse(h, status, message):
    headers = {"Retry_After": "1"} if status == 429 else {}
    send(h, status, {"kind": "Status", "status": "Failure", "code": status, "message": message}, **headers)


def chunk(h, data):
    h.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
    h.wfile.flush()


# ---- modes ------------------------------------------------------------------------------------
def breaks_off(h):
    h.send_response(200)
    h.send_header("Content-Length", "1000")
    h.end_headers()
    h.wfile.write(b'{"kind":"PodList","items":[{"metadata":{"name":"half')
    h.close_connection = True


def ends_too_early(h):
    send(h, 200, b'{"kind":"PodList","metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"half')


def is_no_list(h):
    send(h, 200, {"kind": "SecretsForYou", "items": []})


def is_html(h):
    send(h, 200, b"<html><body>login</body></html>")


def is_deep(h):
    send(h, 200, b'{"kind":"PodList","metadata":' + b"[" * 1000000)


def has_a_large_rest(h):
    send(h, 200, b'{"kind":"PodList","a":"' + b"x" * 10000000 + b'"}')


def never_answers(h):
    time.sleep(3600)
