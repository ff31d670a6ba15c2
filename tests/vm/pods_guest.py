#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs in the guest of tests/vm/pods: pods of a real containerd, made by its CRI as kubelet does, have their
labels in the agent's series; a container that imitates another pod's control group stays in its own."""
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "tests/scenario"), os.path.join(ROOT, "tests")]
from cri_server import *  # noqa: E402
from containerd_run import *  # noqa: E402

SPINS = "named", "10", "3000", "0"  # a tenth of the time: the guest has other things to do


def series_of(server, container_id):
    with server.changed:
        return [p.labels for p in server.arrived if p.labels.get("container_id", "").startswith(container_id)]


def wait_pod(server, container_id, what, condition=lambda labels: True):
    return wait_until(lambda: [l for l in series_of(server, container_id) if "pod" in l and condition(l)], what,
                      120)[-1]


def told(labels):
    return {k: labels.get(k) for k in ("namespace", "pod", "pod_uid", "container", "service_name", "team")}


def prepare_cpuset(group):
    """On cgroup v1 a new group has no CPUs and no memory, and nobody may enter it."""
    parts = group.split("/")
    if "cpuset" not in parts:
        return
    for end in range(parts.index("cpuset") + 2, len(parts) + 1):
        folder = "/".join(parts[:end])
        for name in "cpuset.cpus", "cpuset.mems":
            with open(os.path.join(folder, name), "r+") as f, open(os.path.join(os.path.dirname(folder), name)) as above:
                if not f.read().strip():
                    f.write(above.read())


def main():
    server, config = PushServer(), scratch("fathom.yaml")
    with open(config, "w") as f:
        f.write("""
remote-stores: [{type: pyroscope, address: 'http://127.0.0.1:%d'}]
spool-directory: %s
relabel_configs:
- {source_labels: [__meta_kubernetes_pod_label_team, __meta_kubernetes_pod_annotation_note], target_label: team}
- {source_labels: [container_id], regex: '', action: drop}
""" % (server.port, scratch("spool")))
    containerd = Containerd({"pause": (os.environ["PAUSE"], ["/program"]),
                             "named": (os.environ["NAMED"], ["/program"])})
    runtime = containerd.runtime
    # The socket is found by itself.
    with Agent("--config-path=" + config) as agent:
        shop = runtime.pod("shop-7d4b9c6f5-x8k2p", "prod", "5f0c1c0e-93a7-4f5b-8d8c-0d4b7c1a2b3c",
                           {"team": "core", "pod-template-hash": "7d4b9c6f5"}, {"note": "n1"})
        victim = runtime.pod("victim", "kube-system", "0a0b0c0d-93a7-4f5b-8d8c-0d4b7c1a2b3c", {"app": "v"}, {})
        web = runtime.container(shop, "web", "docker.io/library/named:1", ["/program", *SPINS])
        secret = runtime.container(victim, "secret", "docker.io/library/named:1", ["/program", *SPINS])
        labels = wait_pod(server, web, "the container of the one pod")
        check(told(labels) == {"namespace": "prod", "pod": "shop-7d4b9c6f5-x8k2p", "service_name": "shop",
                               "pod_uid": "5f0c1c0e-93a7-4f5b-8d8c-0d4b7c1a2b3c", "container": "web",
                               "team": "core;n1"}, "labels: %r" % labels)
        check(labels["container_id"] == web, "its ID is the runtime's")
        labels = wait_pod(server, secret, "the container of the other pod")
        check(told(labels) == {"namespace": "kube-system", "pod": "victim", "service_name": "v", "container": "secret",
                               "pod_uid": "0a0b0c0d-93a7-4f5b-8d8c-0d4b7c1a2b3c", "team": ";"},
              "labels of the other: %r" % labels)
        status = agent.status()["container_runtimes"]
        check(len(status) == 1 and status[0]["ok"] and status[0]["pods"] == 2 and status[0]["containers"] == 4 and
              status[0]["runtime"] == "containerd" and status[0]["socket"] == SOCKET, "status: %s" % status)
        # A process moves into a group below its container's that is named like the other's.
        pid = int(subprocess.run(["ctr", "-n", "k8s.io", "task", "ls"], capture_output=True, text=True,
                                 check=True).stdout.split(web)[1].split()[0])
        fakes = [os.path.join(own, "kubepods/besteffort/pod0a0b0c0d-93a7-4f5b-8d8c-0d4b7c1a2b3c", secret)
                 for own in groups_of(pid) if web in own]
        for fake in fakes:
            os.makedirs(fake)
            prepare_cpuset(fake)
        enter = "".join("echo $$ > %s/cgroup.procs; " % fake for fake in fakes)
        imitates = subprocess.Popen(["sh", "-c", enter + "exec %s %s" % (os.environ["NAMED"], " ".join(SPINS))],
                                    stdout=subprocess.DEVNULL)
        labels = wait_pod(server, web + "/" + secret, "a process in an imitation")
        check(labels["pod"] == "shop-7d4b9c6f5-x8k2p" and labels["container"] == "web", "imitation: %r" % labels)
        imitates.kill()
        imitates.wait()
        # A container that comes later, and one that has gone.
        late = runtime.container(shop, "late", "docker.io/library/named:1", ["/program", *SPINS])
        check(wait_pod(server, late, "a container that came later")["container"] == "late", "a later container")
        runtime.remove(secret)
        wait_until(lambda: agent.status()["container_runtimes"][0]["containers"] == 4, "the removed one is gone", 90)
        check(all(l.get("pod") in (None, "victim") for l in series_of(server, secret)), "it was only ever its own pod's")
        check(agent.kill(signal.SIGTERM) == 0, "the agent ends well")
    for container_id in (web, late):
        runtime.remove(container_id)
    containerd.kill()
    with open("/proc/self/cgroup") as f:
        fact("pods of containerd, with %d hierarchies of control groups" % len(f.readlines()))
    done()


main()
