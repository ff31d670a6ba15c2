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

HOST_NETWORK = number(1, 2)  # NamespaceOption: network = NODE


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


def first_text(message):
    return dict(pprof_read.fields(message))[1].decode()


class Runtime:
    def __init__(self, socket):
        self.channel = grpc.insecure_channel("unix:" + socket)

    def call(self, method, request):
        call = self.channel.unary_unary("/runtime.v1.RuntimeService/" + method)
        return call(request, timeout=120, wait_for_ready=True)

    def pod(self, name, namespace, uid, labels, annotations, handler=""):
        """Runs a pod's sandbox by HANDLER; returns its ID and what containers in it want."""
        kubelets = {"io.kubernetes.pod.name": name, "io.kubernetes.pod.namespace": namespace,
                    "io.kubernetes.pod.uid": uid}
        linux = field(1, "/kubepods/besteffort/pod" + uid) + field(2, field(1, HOST_NETWORK))
        config = (field(1, field(1, name) + field(2, uid) + field(3, namespace)) + field(3, "/tmp/logs")
                  + pairs(6, {**labels, **kubelets}) + pairs(7, annotations) + field(8, linux))
        return first_text(self.call("RunPodSandbox", field(1, config) + field(2, handler))), config

    def container(self, pod, name, image_name, command, attempt=0):
        """Runs a container in a pod, for the ATTEMPTth time after the first; returns its ID."""
        id, sandbox_config = pod
        linux = field(2, field(3, HOST_NETWORK))
        config = (field(1, field(1, name) + number(2, attempt)) + field(2, field(1, image_name))
                  + b"".join(field(3, word) for word in command) + pairs(9, {"io.kubernetes.container.name": name})
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

    def is_running(self, container):
        """Whether ContainerStatus's state is CONTAINER_RUNNING."""
        status = dict(pprof_read.fields(self.call("ContainerStatus", field(1, container))))[1]
        return dict(pprof_read.fields(status)).get(3, 0) == 1
