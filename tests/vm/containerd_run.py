# SPDX-License-Identifier: Apache-2.0
"""In a guest: a real containerd with two runtimes, runc and crun, and images of static programs."""
import os
import shutil
import subprocess

from agent import *
from cri_client import Runtime, image

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
            archive = image("/tmp/%s.tar" % name, "docker.io/library/%s:1" % name, program, command)
            subprocess.run(["ctr", "-n", "k8s.io", "images", "import", "--snapshotter", "native", archive], check=True,
                           stdout=subprocess.DEVNULL)

    def start(self):
        with open("/tmp/containerd.log", "a") as log:
            self.process = subprocess.Popen(["containerd"], stdout=log, stderr=log)
        wait_until(lambda: subprocess.run(["ctr", "version"], capture_output=True).returncode == 0, "containerd is up",
                   300)
        self.runtime = Runtime(SOCKET)
        wait_until(self.runtime.is_ready, "containerd answers", 300)

    def kill(self):
        """Its containers live on."""
        self.process.kill()
        self.process.wait()
