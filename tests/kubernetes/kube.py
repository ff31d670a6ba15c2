# SPDX-License-Identifier: Apache-2.0
"""A real kube-apiserver and etcd on loopback, for tests of what the API server says.

KUBE_APISERVER=/path and ETCD=/path name existing programs. Otherwise tests/run --full builds the first through
the Go module proxy (seven CPU minutes) and unpacks Debian's etcd. Exit status 77 without them."""
import contextlib
import functools
import json
import os
import shutil
import signal
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.abspath(os.environ.get("FATHOM_BUILD") or os.path.join(ROOT, "build"))
FULL = bool(os.environ.get("FULL"))
VERSION = "v1.34.4"
API_PORT, ETCD_PORT, ETCD_PEER_PORT = 26443, 23790, 23800
READY_SECONDS = 180
failed = 0


def check(ok, text):
    global failed
    failed += not ok
    print("ok  :" if ok else "FAIL:", text, flush=True)


def skip(reason):
    print(reason)
    sys.exit(77)


def find_apiserver():
    path = os.environ.get("KUBE_APISERVER") or os.path.join(BUILD, "tests/kubernetes/kube-apiserver")
    if os.access(path, os.X_OK):
        return path
    if not FULL:
        skip("no kube-apiserver; tests/run --full builds one")
    flags = "-s -w -X k8s.io/component-base/version.gitVersion=%s" % VERSION
    subprocess.run(["go", "build", "-trimpath", "-ldflags", flags, "-o", path, "k8s.io/kubernetes/cmd/kube-apiserver"],
                   cwd=os.path.join(HERE, "cluster"), check=True, env=dict(os.environ, GOFLAGS="-mod=mod", CGO_ENABLED="0"))
    return path


def find_etcd():
    path = os.environ.get("ETCD") or shutil.which("etcd")
    if path:
        return path
    r = subprocess.run([os.path.join(ROOT, "tests/vm/root.sh"), "--arch", "amd64", "etcd-server"],
                       capture_output=True, text=True)
    if r.returncode:
        skip("no etcd: " + r.stderr.strip().splitlines()[-1])
    return os.path.join(r.stdout.strip().splitlines()[-1], "usr/bin/etcd")


class Server:
    """etcd and kube-apiserver, as a context."""

    def __init__(self, work):
        self.work = work
        self.processes = []
        self.context = ssl._create_unverified_context()  # its certificate is made at the start, for loopback

    def start(self, name, *command):
        log = open(os.path.join(self.work, name + ".log"), "w")
        self.processes.append(subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL))

    def __enter__(self):
        work = self.work
        subprocess.run(["openssl", "genrsa", "-out", work + "/sa.key", "2048"], check=True, capture_output=True)
        with open(work + "/tokens.csv", "w") as f:
            f.write("test,admin,admin,system:masters\n")
        etcd = "http://127.0.0.1:%d" % ETCD_PORT
        self.start("etcd", find_etcd(), "--data-dir", work + "/etcd", "--listen-client-urls", etcd,
                   "--advertise-client-urls", etcd, "--listen-peer-urls", "http://127.0.0.1:%d" % ETCD_PEER_PORT)
        self.start_apiserver()
        self.wait()
        return self

    def start_apiserver(self):
        work, etcd = self.work, "http://127.0.0.1:%d" % ETCD_PORT
        self.start("apiserver", find_apiserver(), "--etcd-servers", etcd, "--bind-address", "127.0.0.1",
                   "--secure-port", str(API_PORT), "--cert-dir", work + "/certs",
                   "--service-account-key-file", work + "/sa.key", "--service-account-signing-key-file", work + "/sa.key",
                   "--service-account-issuer", "https://kubernetes.default.svc", "--token-auth-file", work + "/tokens.csv",
                   "--authorization-mode", "Node,RBAC", "--service-cluster-ip-range", "10.0.0.0/24",
                   "--disable-admission-plugins", "ServiceAccount")

    def stop_apiserver(self):
        """etcd stays."""
        stopped = self.processes.pop()
        stopped.kill()
        stopped.wait()

    @contextlib.contextmanager
    def stopped(self):
        """kube-apiserver runs on at the end; meanwhile connections to it are accepted and nothing else."""
        self.processes[-1].send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.processes[-1].send_signal(signal.SIGCONT)

    def __exit__(self, *_):
        for p in reversed(self.processes):
            p.kill()
            p.wait()

    def wait(self):
        end = time.monotonic() + READY_SECONDS
        while self.ask("GET", "/readyz")[0] != 200:
            if time.monotonic() > end or self.processes[-1].poll() is not None:
                with open(self.work + "/apiserver.log") as f:
                    sys.exit("kube-apiserver is not ready: " + f.read()[-2000:])
            time.sleep(.5)

    def ask(self, method, path, body=None, kind="application/json"):
        request = urllib.request.Request("https://127.0.0.1:%d%s" % (API_PORT, path), method=method,
                                         data=json.dumps(body).encode() if body else None,
                                         headers={"Authorization": "Bearer test", "Content-Type": kind})
        try:
            with urllib.request.urlopen(request, context=self.context, timeout=30) as answer:
                text, status = answer.read(), answer.status
        except urllib.error.HTTPError as e:
            text, status = e.read(), e.code
        except OSError as e:
            return 0, str(e)
        try:
            return status, json.loads(text)
        except ValueError:
            return status, text.decode(errors="replace")

    def resources(self, version):
        """Kind → (plural, namespaced) of an API version."""
        _, found = self.ask("GET", ("/apis/" if "/" in version else "/api/") + version)
        return {r["kind"]: (r["name"], r["namespaced"]) for r in found.get("resources", []) if "/" not in r["name"]}

    def apply(self, value, dry_run):
        version = value["apiVersion"]
        plural, namespaced = self.resources(version)[value["kind"]]
        path = ("/apis/" if "/" in version else "/api/") + version
        if namespaced:
            path += "/namespaces/" + value["metadata"]["namespace"]
        query = {"fieldManager": "test", "fieldValidation": "Strict", "force": "true"}
        if dry_run:
            query["dryRun"] = "All"
        path += "/%s/%s?%s" % (plural, value["metadata"]["name"], urllib.parse.urlencode(query))
        return self.ask("PATCH", path, value, "application/apply-patch+yaml")


@functools.cache
def manifests():
    """The program of manifests/, built; Go's cache makes that cheap."""
    program = os.path.join(BUILD, "tests/kubernetes/manifests")
    r = subprocess.run(["go", "build", "-o", program, "."], cwd=os.path.join(HERE, "manifests"),
                       capture_output=True, text=True, env=dict(os.environ, GOFLAGS="-mod=mod", CGO_ENABLED="0"))
    if r.returncode:
        sys.exit("building tests/kubernetes/manifests:\n" + r.stderr)
    return program


def as_objects(path):
    """The objects of a YAML file, read by the program that renders."""
    r = subprocess.run([manifests(), "-json", path], capture_output=True, text=True)
    if r.returncode:
        sys.exit(r.stderr)
    return json.loads(r.stdout)
