#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs in the guest of tests/vm/pods-churn: pods that come and go by the CRI of a real containerd, with runc and
with crun. Each container's program names itself, so that each sample says whose it is: not one may have the labels
of another pod or container, and the share of those with the right ones is printed."""
import os
import sys
import uuid

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "tests/scenario"), os.path.join(ROOT, "tests")]
from servers import Parca  # noqa: E402
from push_server import *  # noqa: E402
from containerd_run import *  # noqa: E402

JOBS = 8
CRASHES = 4
PARCA_TYPE = "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta"


class Pods:
    def __init__(self, runtime):
        self.runtime = runtime
        self.owners = {}  # name of a program → (namespace, pod, container) that alone has it
        self.containers = []

    def pod(self, name, handler, namespace="churn"):
        made = self.runtime.pod(name, namespace, str(uuid.uuid4()), {"app": name}, {}, handler)
        return made, namespace, name

    def run(self, pod, container, seconds=None, status=0, attempt=0):
        """A container of POD whose program has a name of its own; returns its ID. Its program spins for SECONDS, or
        now and then for ever."""
        made, namespace, pod_name = pod
        program = "p%d" % len(self.owners)
        self.owners[program] = namespace, pod_name, container
        id = self.runtime.container(made, container, "docker.io/library/named:1",
                                    ["/program", program, "100" if seconds else "10", str(seconds or 3000), str(status)],
                                    attempt)
        self.containers.append(id)
        return id

    def remove(self, pod):
        self.runtime.remove_pod(pod[0])

    def wait_end(self, container):
        wait_until(lambda: not self.runtime.is_running(container), "%s has ended" % container[:12], WAIT_LONG_S, .2)


def run_pods(pods, handler):
    """All kinds of pods by one runtime. Returns those that live on."""
    # Two pods of one image, for as long as the test lasts.
    twins = [pods.pod("%s-twin-%s" % (handler, n), handler) for n in "ab"]
    for twin in twins:
        pods.run(twin, "app")
    # An init container, then the app with a sidecar.
    shop = pods.pod(handler + "-shop", handler, "shop")
    pods.wait_end(pods.run(shop, "init", 1))
    pods.run(shop, "app")
    pods.run(shop, "sidecar")
    # A container that crashes again and again in one pod.
    crash = pods.pod(handler + "-crash", handler)
    for attempt in range(CRASHES):
        pods.wait_end(pods.run(crash, "app", .5, 1, attempt))
    return [*twins, shop, crash]


def run_jobs(pods, handler, containerd=None):
    """Short pods one after the other; each second one is deleted while its program runs. CONTAINERD is restarted
    halfway."""
    for n in range(JOBS):
        job = pods.pod("%s-job-%d" % (handler, n), handler, "jobs")
        container = pods.run(job, "job", 1000 if n % 2 else 1)
        if n % 2:
            time.sleep(2)  # so that there is something to sample
        else:
            pods.wait_end(container)
        if n == JOBS // 2 and containerd:
            containerd.kill()
            containerd.start()
            pods.runtime = containerd.runtime
        pods.remove(job)


def judge(server, owners):
    """Samples with the right labels, without labels, and with another's."""
    right, bare, wrong = 0, collections.Counter(), []
    seen = set()
    with server.changed:
        arrived = list(server.arrived)
    for payload in arrived:
        owner = owners.get(payload.labels.get("comm"))
        if not owner:
            continue
        has = tuple(payload.labels.get(k) for k in ("namespace", "pod", "container"))
        seen.add(owner)
        if has == owner:
            right += payload.count
        elif has == (None, None, None):
            bare[owner] += payload.count
        else:
            wrong.append((owner, has, payload.count))
    return right, bare, wrong, seen


def functions_of(profile):
    return {f["func"] for s in profile.samples for f in s["frames"]}


def sent_functions(server, owners):
    """By owner, the functions of the programs that it alone has."""
    sent = collections.defaultdict(set)
    with server.changed:
        for payload in server.arrived:
            owner = owners.get(payload.labels.get("comm"))
            if owner:
                sent[owner] |= functions_of(payload.profile)
    return sent


def ask_parca(parca, owners, sent):
    """Every pod's functions by its label. SENT has those that the other server was sent for the pod."""
    for owner in sorted(set(owners.values())):
        query = '%s{pod="%s",container="%s"}' % (PARCA_TYPE, owner[1], owner[2])
        got = parca.profile(query)
        functions = functions_of(got) if got else set()
        check("spin" in functions, "Parca: %s: %d functions, %s; sent to the other server: %s" % (
            query, len(functions), sorted(map(str, functions))[:30], sorted(map(str, sent[owner]))[:30]))
    check({o[1] for o in owners.values()} <= set(parca.label_values("pod")), "Parca knows all pods by label")


def main():
    server, config = PushServer(), scratch("fathom.yaml")
    binary = os.environ.get("PARCA_BIN")
    parca = Parca(binary) if binary else None
    with open(config, "w") as f:
        f.write("""
remote-stores:
- {type: pyroscope, address: 'http://127.0.0.1:%d'}
%s
spool-directory: %s
relabel_configs:
- {source_labels: [container_id], regex: '', action: drop}
""" % (server.port, "- {type: parca, address: 'http://%s'}" % parca.address if parca else "", scratch("spool")))
    containerd = Containerd({"pause": (os.environ["PAUSE"], ["/program"]),
                             "named": (os.environ["NAMED"], ["/program"])})
    pods = Pods(containerd.runtime)
    with Agent("--config-path=" + config) as agent:
        stay = [pod for handler in ("runc", "crun") for pod in run_pods(pods, handler)]
        run_jobs(pods, "runc")
        run_jobs(pods, "crun", containerd)
        # The last job's window is stored and sent.
        time.sleep(25)
        for pod in stay:
            pods.remove(pod)
        check(agent.kill(signal.SIGTERM) == 0, "the agent ends well")
    right, bare, wrong, seen = judge(server, pods.owners)
    everyone = set(pods.owners.values())
    check(not wrong, "no sample has another's labels: %s" % wrong)
    check(seen == everyone, "all %d containers' programs have samples: %s" % (len(everyone), sorted(everyone - seen)))
    check(right >= .9 * (right + sum(bare.values())), "%d samples have the right labels, %d none: %s" % (
        right, sum(bare.values()), dict(bare)))
    if parca:
        ask_parca(parca, pods.owners, sent_functions(server, pods.owners))
    containerd.kill()
    fact("%d containers in %d pods: %.2f %% of %d samples with the right pod, none with another's" % (
        len(pods.containers), len({o[:2] for o in everyone}), 100 * right / (right + sum(bare.values())),
        right + sum(bare.values())))
    done()


main()
