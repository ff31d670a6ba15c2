# SPDX-License-Identifier: Apache-2.0
"""In a guest: a real containerd with two runtimes, runc and crun, images of static programs, and the agent's own."""
import http.client
import json
import os
import re
import shutil
import subprocess
import time

from agent import *
from cri_client import HOST_NETWORK, HOST_PROCESSES, WAIT_LONG_S, Runtime, image, image_name

SOCKET = "/run/containerd/containerd.sock"
CONTAINERD = """
version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "docker.io/library/pause:1"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "native"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.crun]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.crun.options]
        BinaryName = "%s"
"""


def groups_of(pid):
    """The directories of a process's control groups: one on cgroup v2, one in each hierarchy else (vm.sh mounts them)."""
    found = []
    with open("/proc/%d/cgroup" % pid) as f:
        for line in f:
            _, controllers, path = line.strip().split(":", 2)
            unified = "unified" if os.path.exists("/sys/fs/cgroup/unified") else ""
            found.append(os.path.join("/sys/fs/cgroup", controllers.removeprefix("name=") or unified, path.lstrip("/")))
    return found


class Containerd:
    def __init__(self, images):
        """IMAGES: name → (static program, its command)."""
        for folder in ("/etc/containerd", "/tmp/logs"):
            os.makedirs(folder, exist_ok=True)
        for name, text in (("hosts", "127.0.0.1 localhost\n"), ("resolv.conf", ""), ("hostname", "guest\n")):
            with open("/etc/" + name, "w") as f:
                f.write(text)
        with open("/etc/containerd/config.toml", "w") as f:
            f.write(CONTAINERD % shutil.which("crun"))
        if os.path.exists("/sys/fs/cgroup/cgroup.subtree_control"):
            with open("/sys/fs/cgroup/cgroup.subtree_control", "w") as f:
                f.write("+cpu +memory +pids")
        self.start()
        for name, (program, command) in images.items():
            self.load(image("/tmp/%s.tar" % name, "docker.io/library/%s:1" % name, program, command))

    def load(self, archive):
        subprocess.run(["ctr", "-n", "k8s.io", "images", "import", "--snapshotter", "native", archive], check=True,
                       stdout=subprocess.DEVNULL)

    def start(self):
        with open("/tmp/containerd.log", "a") as log:
            self.process = subprocess.Popen(["containerd"], stdout=log, stderr=log)
        wait_until(lambda: subprocess.run(["ctr", "version"], capture_output=True).returncode == 0, "containerd is up",
                   WAIT_LONG_S)
        self.runtime = Runtime(SOCKET)
        wait_until(self.runtime.is_ready, "containerd answers", WAIT_LONG_S)

    def kill(self):
        """Its containers live on."""
        self.process.kill()
        self.process.wait()


# ---- the agent as a pod ---------------------------------------------------------------------
ARCHIVE = os.path.join(BUILD, "fathom-image.tar")
MANIFEST = os.path.join(ROOT, "tests/kubernetes/golden/kustomize-local.yaml")


def manifest_capabilities():
    with open(MANIFEST) as f:
        return re.findall(r"- (\w+)", re.search(r"capabilities:\n +add:\n((?: +- \w+\n)+) +drop:", f.read()).group(1))


class PodAgent(Agent):
    """The project's image (ARCHIVE, loaded), run as the DaemonSet's pod is, with the settings of the file CONFIG. It
    is reached at the machine's address, since nothing here makes networks."""

    def __init__(self, runtime, config):
        self.runtime, self.http, self.port, self.store = runtime, "127.0.0.1:7071", 7071, "/var/lib/fathom/profiles"
        for folder in ("/etc/fathom", "/var/lib/fathom", "/var/cache/fathom", "/run/fathom-tmp"):
            os.makedirs(folder, exist_ok=True)
        shutil.copy(config, "/etc/fathom/fathom.yaml")
        self.pod = runtime.pod("fathom-x7k2p", "fathom", "7a0b0c0d-93a7-4f5b-8d8c-0d4b7c1a2b3c",
                               {"app.kubernetes.io/name": "fathom"}, {}, namespaces=HOST_NETWORK + HOST_PROCESSES)
        self.id = runtime.confined(self.pod, "fathom", image_name(ARCHIVE), ["agent", "--config-path=/etc/fathom/fathom.yaml",
                                                               "--http-address=" + self.http, "--http-socket="],
                                   manifest_capabilities(),
                                   [("/etc/fathom", "/etc/fathom", 1), ("/var/lib/fathom", "/var/lib/fathom", 0),
                                    ("/var/cache/fathom", "/var/cache/fathom", 0), ("/tmp", "/run/fathom-tmp", 0)])
        wait_until(self.is_ready, "the agent's pod is ready", WAIT_LONG_S, .5)
        tasks = subprocess.run(["ctr", "-n", "k8s.io", "task", "ls"], capture_output=True, text=True, check=True).stdout
        self.pid = int(tasks.split(self.id)[1].split()[0])

    def is_ready(self):
        if not self.runtime.is_running(self.id):
            stop("the agent has ended: " + self.log())
        try:
            return self.ask("/ready").status == 200
        except OSError:
            return False

    def ask(self, path, method="GET", headers=None, uid=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_S)
        connection.request(method, path, headers=headers or {})
        answer = connection.getresponse()
        return Answer(answer.status, answer.headers, answer.read())

    def execute(self, *arguments):
        """The image's program in its container, with the container's rights; status and output."""
        r = subprocess.run(["ctr", "-n", "k8s.io", "task", "exec", "--exec-id", "e%d" % time.monotonic_ns(), self.id,
                            "/usr/bin/fathom", *arguments], capture_output=True, text=True)
        return r.returncode, r.stdout, r.stderr

    def check_under(self, apparmor):
        """Of `fathom check --json` in a container with the same rights: {feature: (state, why)}."""
        id = self.runtime.confined(self.pod, "check", image_name(ARCHIVE), ["check", "--json"], manifest_capabilities(),
                                   [], apparmor)
        wait_until(lambda: not self.runtime.is_running(id), "fathom check has ended", WAIT_LONG_S, .5)
        with open("/tmp/logs/check-0.log") as f:
            text = "".join(line.split(" ", 3)[3] for line in f)
        self.runtime.remove(id)
        return {f["feature"]: (f["state"], f["why"]) for f in json.loads(text)}

    def log(self):
        with open("/tmp/logs/fathom-0.log") as f:
            return f.read()

    def end(self):
        """Its exit status when it is told to end, as kubelet does."""
        return self.runtime.stop(self.id, 30)

    def __exit__(self, kind, *_):
        """It ends with the guest."""
        if kind:
            with open("/tmp/containerd.log") as f:
                print("containerd's log:\n%s\nthe agent's log:\n%s" % (f.read()[-3000:], self.log()[-3000:]))
