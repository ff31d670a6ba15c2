# SPDX-License-Identifier: Apache-2.0
"""Pods made as kubelet makes them: package runtime.v1 of github.com/kubernetes/cri-api, api.proto, spoken to a
real container runtime, and the images for them."""
import hashlib
import io
import json
import tarfile

import grpc

import pprof_read
from cri_server import field, number, pairs

# An emulator on a busy machine takes minutes: containerd gives runc ten seconds to delete a container, and tries
# again after pauses that grow.
WAIT_LONG_S = 600
HOST_NETWORK = number(1, 2)  # NamespaceOption: network = NODE
HOST_PROCESSES = number(2, 2)  # pid = NODE
# What kubelet's default (ProcMount) hides and protects.
MASKED = ("/proc/asound", "/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list",
          "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware", "/sys/devices/virtual/powercap")
READONLY = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")


def image(path, name, program, command):
    """A docker-archive with one static program as /program."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as t:
        t.add(program, arcname="program")
    layer = layer.getvalue()
    digest = hashlib.sha256(layer).hexdigest()
    config = json.dumps({"architecture": "amd64", "os": "linux", "config": {"Entrypoint": command}, "history": [{}],
                         "rootfs": {"type": "layers", "diff_ids": ["sha256:" + digest]}}).encode()
    manifest = json.dumps([{"Config": "config.json", "RepoTags": [name], "Layers": [digest + "/layer.tar"]}]).encode()
    with tarfile.open(path, "w") as t:
        for member, content in (("config.json", config), (digest + "/layer.tar", layer), ("manifest.json", manifest)):
            info = tarfile.TarInfo(member)
            info.size = len(content)
            t.addfile(info, io.BytesIO(content))
    return path


def image_name(path):
    """The name that a docker-archive gives its image."""
    with tarfile.open(path) as t:
        return json.load(t.extractfile("manifest.json"))[0]["RepoTags"][0]


def first_text(message):
    return dict(pprof_read.fields(message))[1].decode()


class Runtime:
    def __init__(self, socket):
        self.channel = grpc.insecure_channel("unix:" + socket)

    def call(self, method, request):
        call = self.channel.unary_unary("/runtime.v1.RuntimeService/" + method)
        return call(request, timeout=WAIT_LONG_S, wait_for_ready=True)

    def pod(self, name, namespace, uid, labels, annotations, handler="", namespaces=HOST_NETWORK):
        """Runs a pod's sandbox by HANDLER; returns its ID and what containers in it want."""
        kubelets = {"io.kubernetes.pod.name": name, "io.kubernetes.pod.namespace": namespace,
                    "io.kubernetes.pod.uid": uid}
        linux = field(1, "/kubepods/besteffort/pod" + uid) + field(2, field(1, namespaces))
        config = (field(1, field(1, name) + field(2, uid) + field(3, namespace)) + field(3, "/tmp/logs")
                  + pairs(6, {**labels, **kubelets}) + pairs(7, annotations) + field(8, linux))
        return first_text(self.call("RunPodSandbox", field(1, config) + field(2, handler))), config

    def container(self, pod, name, image_name, command, attempt=0):
        """Runs a container in a pod, for the ATTEMPTth time after the first; returns its ID."""
        return self.run(pod, name, image_name, field(2, field(3, HOST_NETWORK)),
                        b"".join(field(3, word) for word in command), attempt)

    def confined(self, pod, name, image_name, arguments, capabilities, mounts, apparmor=1):
        """A container as kubelet runs the DaemonSet's: all capabilities but these dropped, the runtime's seccomp
        profile, the root file system read-only, no new privileges, root, all processes of the machine to be seen.
        MOUNTS: [(path, path on the machine, read-only)]. APPARMOR: 0 is the runtime's profile, 1 none."""
        security = (field(1, b"".join(field(1, c) for c in capabilities) + field(2, "ALL"))
                    + field(3, HOST_NETWORK + HOST_PROCESSES) + field(5, number(1, 0)) + number(7, 1) + number(11, 1)
                    + b"".join(field(13, p) for p in MASKED) + b"".join(field(14, p) for p in READONLY)
                    + field(15, number(1, 0)) + field(16, number(1, apparmor)))
        more = b"".join(field(4, word) for word in arguments) + b"".join(
            field(7, field(1, path) + field(2, host) + number(3, readonly)) for path, host, readonly in mounts)
        return self.run(pod, name, image_name, field(2, security), more)

    def run(self, pod, name, image_name, linux, more, attempt=0):
        id, sandbox_config = pod
        config = (field(1, field(1, name) + number(2, attempt)) + field(2, field(1, image_name))
                  + more + pairs(9, {"io.kubernetes.container.name": name})
                  + field(11, "%s-%d.log" % (name, attempt)) + field(15, linux))
        made = first_text(self.call("CreateContainer", field(1, id) + field(2, config) + field(3, sandbox_config)))
        self.call("StartContainer", field(1, made))
        return made

    def remove(self, container):
        self.call("StopContainer", field(1, container))
        self.call("RemoveContainer", field(1, container))

    def remove_pod(self, pod):
        """With its containers, which are killed."""
        self.call("StopPodSandbox", field(1, pod[0]))
        self.call("RemovePodSandbox", field(1, pod[0]))

    def is_ready(self):
        """It listens a while before it answers."""
        try:
            self.is_running("")
        except grpc.RpcError as e:
            return e.code() != grpc.StatusCode.UNAVAILABLE and "not initialized" not in e.details()
        return True

    def stop(self, container, seconds):
        """As kubelet does, with SECONDS until it is killed; returns its exit status."""
        self.call("StopContainer", field(1, container) + number(2, seconds))
        return self.status(container).get(7, 0)

    def status(self, container):
        """The fields of ContainerStatus."""
        return dict(pprof_read.fields(dict(pprof_read.fields(self.call("ContainerStatus", field(1, container))))[1]))

    def is_running(self, container):
        """Whether ContainerStatus's state is CONTAINER_RUNNING."""
        return self.status(container).get(3, 0) == 1
