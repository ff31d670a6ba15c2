#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs in the guest of tests/vm/docker: containers of a real Docker have their names in the agent's series, whether
they begin before the agent or after it, and when they are renamed."""
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "tests/scenario"), os.path.join(ROOT, "tests")]
from push_server import *  # noqa: E402

SETTINGS = """
profiling-cpu-sampling-frequency: 97
spool-directory: %s
node: guest
remote-stores:
- {type: pyroscope, address: 'http://127.0.0.1:%d'}
relabel_configs:
- source_labels: [__meta_docker_container_label_com_docker_compose_project]
  target_label: project
- source_labels: [__meta_docker_container_name, __meta_docker_container_image, __meta_docker_container_label_team]
  target_label: reference
- source_labels: [container_id]
  regex: .+
  action: keep
"""
# No network is needed, and the guest has no rules for one.
SOCKET = "unix:///run/docker.sock"  # /var/run is no link here
DOCKERD = ["dockerd", "--host=" + SOCKET, "--iptables=false", "--ip6tables=false", "--bridge=none",
           "--storage-driver=vfs", "--exec-opt=native.cgroupdriver=cgroupfs"]
START_S = 400


def docker(*arguments):
    r = subprocess.run(["docker", *arguments], capture_output=True, text=True)
    if r.returncode:
        stop("docker %s: %s" % (arguments[0], r.stderr.strip()))
    return r.stdout.strip()


def start_docker():
    for name, text in (("hosts", "127.0.0.1 localhost\n"), ("resolv.conf", ""), ("hostname", "guest\n")):
        with open("/etc/" + name, "w") as f:
            f.write(text)
    with open("/sys/fs/cgroup/cgroup.subtree_control", "w") as f:
        f.write("+cpu +memory +pids")
    with open("/tmp/docker.log", "w") as log:
        dockerd = subprocess.Popen(DOCKERD, stdout=log, stderr=log)
    wait_until(lambda: subprocess.run(["docker", "version"], capture_output=True).returncode == 0 or
               dockerd.poll() is not None, "docker is up", START_S)
    if dockerd.poll() is not None:
        with open("/tmp/docker.log") as log:
            stop("dockerd has ended: " + log.read()[-1000:])
    image = scratch("image")
    os.makedirs(image)
    shutil.copy(os.environ["CHAIN"], os.path.join(image, "program"))
    subprocess.run(["tar", "-C", image, "-cf", scratch("image.tar"), "program"], check=True)
    docker("import", "--change", "LABEL team=core", scratch("image.tar"), "local/chain:1")
    return dockerd


def run(name, *labels):
    return docker("run", "-d", "--network=none", "--security-opt=apparmor=unconfined", "--name=" + name,
                  *["--label=" + label for label in labels], "local/chain:1", "/program", "3000")


def series_of(server, id):
    with server.changed:
        return [p.labels for p in server.arrived if p.labels.get("container_id") == id]


def named(server, id, name):
    return wait_until(lambda: [l for l in series_of(server, id) if l.get("container") == name], "%s is named" % name,
                      120)[-1]


def main():
    os.environ["DOCKER_HOST"] = SOCKET
    server = PushServer()
    config = scratch("fathom.yaml")
    with open(config, "w") as f:
        f.write(SETTINGS % (scratch("spool"), server.port))
    dockerd = start_docker()
    first = run("market-shop-1", "com.docker.compose.service=shop", "com.docker.compose.project=market")
    with Agent("--config-path=" + config) as agent:
        wait_until(lambda: agent.status()["container_runtimes"], "docker is asked")
        labels = named(server, first, "market-shop-1")
        check(labels["service_name"] == "shop" and labels["project"] == "market" and
              labels["reference"] == "/market-shop-1;local/chain:1;core", "labels: %r" % labels)
        late = run("late")
        check(named(server, late, "late")["service_name"] == "late", "a later one")
        check(all(l.get("container") == "late" for l in series_of(server, late)), "in its first window, too")
        docker("rename", "late", "renamed")
        named(server, late, "renamed")
        status = agent.status()["container_runtimes"]
        check(len(status) == 1 or status[-1]["runtime"] == "docker", "status: %s" % status)
        check(status[-1]["ok"] and status[-1]["events"] and status[-1]["containers"] == 2, "status: %s" % status)
        check(agent.metrics()["fathom_metadata_events_total"] >= 3, "events were seen")
    for name in ("market-shop-1", "renamed"):
        docker("rm", "-f", name)
    dockerd.terminate()
    dockerd.wait()


main()
done()
