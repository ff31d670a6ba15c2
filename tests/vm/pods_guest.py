#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs in the guest of tests/vm/pods: pods of a real containerd, made by its CRI as kubelet does, have their
labels in the series of the agent, which is a pod of the project's own image with the manifest's capabilities; a
container that imitates another pod's control group stays in its own. With a Parca, that is asked by pod label, too."""
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "tests/scenario"), os.path.join(ROOT, "tests")]
from cri_server import *  # noqa: E402
from servers import Parca  # noqa: E402
from containerd_run import *  # noqa: E402

NUMBERS = {"DAC_READ_SEARCH": 2, "KILL": 5, "SETGID": 6, "SETUID": 7, "SYS_PTRACE": 19, "SYS_ADMIN": 21, "SYSLOG": 34,
           "PERFMON": 38, "BPF": 39, "CHECKPOINT_RESTORE": 40}  # capability.h
PARCA_TYPE = "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta"
SPINS = "named", "10", "3000", "0"  # a tenth of the time: the guest has other things to do


def series_of(server, container_id):
    with server.changed:
        return [p.labels for p in server.arrived if p.labels.get("container_id", "").startswith(container_id)]


def wait_pod(server, container_id, what, condition=lambda labels: True):
    return wait_until(lambda: [l for l in series_of(server, container_id) if "pod" in l and condition(l)], what,
                      WAIT_LONG_S)[-1]


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


def check_rights(agent):
    """What the kernel grants the agent's process, and what the program finds itself."""
    with open("/proc/%d/status" % agent.pid) as f:
        status = dict(line.split(":\t", 1) for line in f.read().splitlines() if ":\t" in line)
    wanted = sum(1 << NUMBERS[name] for name in manifest_capabilities())
    check(int(status["CapBnd"], 16) == int(status["CapPrm"], 16) == wanted, "its capabilities are the manifest's: %s, %x" % (
        status["CapPrm"], wanted))
    check(status["NoNewPrivs"] == "1" and status["Seccomp"] == "2", "no new privileges, behind the runtime's seccomp profile")
    code, text, error = agent.execute("check", "--json")
    bad = {f["feature"]: f["state"] for f in json.loads(text) if f["state"] != "ok"} if text else {"nothing": error}
    # An emulator has no PMU; tracefs is for functions of the kernel, and is mounted privately.
    check(code == 0 and not set(bad) - {"cycles", "tracefs", "kprobe_session"}, "fathom check inside is green: %s" % bad)
    check_apparmor(agent)


def check_apparmor(agent):
    """The manifest wants none: under the runtime's profile the machine's processes cannot be read."""
    if not has_apparmor():
        fact("without AppArmor")
        return
    with open("/proc/%d/attr/current" % agent.pid) as f:
        label = f.read().strip()
    check(label == "unconfined", "no profile of AppArmor: " + label)
    state, why = agent.check_under(0)["processes"]
    check(state == "degraded" and "profile cri-containerd.apparmor.d (enforce)" in why, "under containerd's: %s" % why)
    fact("AppArmor is on")


def has_apparmor():
    try:
        with open("/sys/module/apparmor/parameters/enabled") as f:
            return f.read().strip() == "Y"
    except OSError:
        return False


def check_names(agent, *whose):
    """Functions of programs that began before the agent, of other containers and of the machine itself."""
    def named():
        return {s["labels"].get("comm") for f in files_of(agent.store) if f.endswith(".pb.gz")
                for s in read_profile(os.path.join(agent.store, f)).samples if "spin" in {f["func"] for f in s["frames"]}}
    end = time.monotonic() + WAIT_LONG_S
    while not named() >= set(whose) and time.monotonic() < end:
        time.sleep(2)
    check(named() >= set(whose), "functions of %s have names: %s" % (whose, sorted(named())))


def ask_parca(parca, pods):
    """PODS: (namespace, pod, container)."""
    for namespace, pod, container in pods:
        query = '%s{namespace="%s",pod="%s",container="%s"}' % (PARCA_TYPE, namespace, pod, container)
        profile = wait_until(lambda: parca.profile(query), query, WAIT_LONG_S, 2)
        check("spin" in {f["func"] for s in profile.samples for f in s["frames"]}, "Parca, by label: " + query)


def main():
    server, config = PushServer(), scratch("fathom.yaml")
    parca = Parca(os.environ["PARCA_BIN"]) if os.environ.get("PARCA_BIN") else None
    with open(config, "w") as f:
        f.write("""
profiling-duration: 2s
cpu-budget: 0
remote-stores:
- {type: pyroscope, address: 'http://127.0.0.1:%d'}
%s
spool-directory: /var/lib/fathom/spool
relabel_configs:
- {source_labels: [__meta_kubernetes_pod_label_team, __meta_kubernetes_pod_annotation_note], target_label: team}
- {source_labels: [container_id], regex: '', action: drop}
""" % (server.port, "- {type: parca, address: 'http://%s'}" % parca.address if parca else ""))
    containerd = Containerd({"pause": (os.environ["PAUSE"], ["/program"]),
                             "named": (os.environ["NAMED"], ["/program"])})
    containerd.load(ARCHIVE)
    runtime = containerd.runtime
    of_node = subprocess.Popen([os.environ["NAMED"], "of-node", *SPINS[1:]])
    early = runtime.container(runtime.pod("early", "prod", "1a0b0c0d-93a7-4f5b-8d8c-0d4b7c1a2b3c", {}, {}), "main",
                              "docker.io/library/named:1", ["/program", "early", *SPINS[1:]])
    # The socket is found by itself, through /proc/1/root.
    with PodAgent(runtime, config) as agent:
        check_rights(agent)
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
        # The list is ten seconds old at most.
        runtimes = wait_until(lambda: [r for r in agent.status()["container_runtimes"] if r["containers"] == 8],
                              "eight containers are told of", WAIT_LONG_S, 1)
        check(len(runtimes) == 1 and runtimes[0]["ok"] and runtimes[0]["pods"] == 4 and
              runtimes[0]["runtime"] == "containerd" and runtimes[0]["socket"] == "/proc/1/root" + SOCKET, "status: %s" % runtimes)
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
        wait_until(lambda: agent.status()["container_runtimes"][0]["containers"] == 8, "the removed one is gone",
                   WAIT_LONG_S, 1)
        check(all(l.get("pod") in (None, "victim") for l in series_of(server, secret)), "it was only ever its own pod's")
        labels = wait_pod(server, early, "a container that began before the agent")
        check((labels["namespace"], labels["pod"], labels["container"]) == ("prod", "early", "main"), "early: %r" % labels)
        check_names(agent, "early", "of-node", "named")
        if parca:
            ask_parca(parca, [("prod", "early", "main"), ("prod", "shop-7d4b9c6f5-x8k2p", "web"),
                              ("kube-system", "victim", "secret")])
        check(agent.end() == 0, "the agent ends well")
    of_node.kill()
    for container_id in (web, late, early):
        runtime.remove(container_id)
    containerd.kill()
    with open("/proc/self/cgroup") as f:
        fact("pods of containerd, with %d hierarchies of control groups" % len(f.readlines()))
    done()


main()
