#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# In the guest of tests/kubernetes/kubelet: containerd and a kubelet run the static pods of FOLDER/pods, then those of
# FOLDER/late. What is to be judged goes to FOLDER/out: also what a Parca answers to FOLDER/queries.
set -u
folder=$1 out=$1/out
b=/vm/bin/busybox
mkdir -p "$out"
mount -t tmpfs -o size=1500m state /var/lib
mkdir -p /var/lib/{containerd,kubelet} /var/log/pods /run/containerd /etc/containerd /etc/cni/net.d /etc/kubelet/pods
echo node-1 >/proc/sys/kernel/hostname
: >/etc/resolv.conf
echo '127.0.0.1 localhost node-1' >/etc/hosts
mount --make-rshared /
echo '+cpu +memory +pids +cpuset +io' >/sys/fs/cgroup/cgroup.subtree_control
$b ip link set lo up

cat >/etc/cni/net.d/10-ptp.conflist <<'CNI'
{"cniVersion": "0.4.0", "name": "ptp", "plugins": [
  {"type": "ptp", "ipMasq": false, "ipam": {"type": "host-local", "subnet": "10.88.0.0/24"}}]}
CNI
cat >/etc/containerd/config.toml <<'TOML'
version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "docker.io/library/pause:1"
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "/usr/lib/cni"
TOML
cat >/etc/kubelet/config.yaml <<'YAML'
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {webhook: {enabled: false}, anonymous: {enabled: true}}
authorization: {mode: AlwaysAllow}
readOnlyPort: 10255
cgroupDriver: cgroupfs
failSwapOn: false
staticPodPath: /etc/kubelet/pods
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
resolvConf: ""
localStorageCapacityIsolation: false
YAML
# Without it apparmor_parser says so where containerd expects a version.
mkdir -p /etc/apparmor && : >/etc/apparmor/parser.conf
# Static pods have no ConfigMaps: the node has the file.
cp -r "$folder/etc/fathom" /etc/fathom

"$folder/hostchain" 3000 >/dev/null &
containerd >"$out/containerd.log" 2>&1 &
until ctr version >/dev/null 2>&1; do sleep .5; done
for image in "$folder"/*.tar; do
	ctr -n k8s.io images import "$image" >>"$out/images" 2>&1
done
mkdir -p "$out/parca" /tmp/parca
"$folder/parca" -http-address 0.0.0.0:7070 -dir /tmp/parca >"$out/parca.log" 2>&1 &
cp "$folder"/pods/*.yaml /etc/kubelet/pods/
"$folder/kubelet" --config /etc/kubelet/config.yaml --hostname-override node-1 >"$out/kubelet.log" 2>&1 &

pods() { $b wget -q -O - http://127.0.0.1:10255/pods; }
ready_pods() { pods 2>/dev/null | grep -o '"type":"Ready","status":"True"' | wc -l; }
wanted=$(ls "$folder"/pods | wc -l)
for _ in $(seq 240); do
	[ "$(ready_pods)" -ge "$wanted" ] && break
	sleep 1
done
pods >"$out/pods.json"
agent=$(pgrep -x -f '/usr/bin/fathom agent .*' | head -1)
[ -n "$agent" ] || { cat /var/log/pods/*fathom*/fathom/*.log; tail -5 "$out/kubelet.log"; exit 1; }
cp "/proc/$agent/status" "$out/status"
cat "/proc/$agent/mountinfo" >"$out/mountinfo"
cat "/proc/$agent/cgroup" >"$out/cgroup"
cat "/proc/$agent/attr/current" >"$out/apparmor" 2>/dev/null
cat /proc/[0-9]*/attr/current >"$out/apparmor.all" 2>/dev/null
id=$(sed -nE 's|.*/([0-9a-f]{64})$|\1|p' "/proc/$agent/cgroup")
# With the container's own capabilities and seccomp filter.
ctr -n k8s.io task exec --exec-id check "$id" /usr/bin/fathom check --json >"$out/check.json" 2>"$out/check.err"
echo $? >"$out/check.status"
# Those that come and go, one of them deleted while its program runs; then as many restarts as are asked for.
cp "$folder"/late/*.yaml /etc/kubelet/pods/
# Whether Parca's answer NAME is a profile with the function that all these programs run: in its string table.
answered() {
	sed -E 's/.*"pprof":"([^"]*)".*/\1/' "$out/parca/$1" 2>/dev/null | $b base64 -d 2>/dev/null | $b zcat 2>/dev/null |
		LC_ALL=C grep -aqF $'\x04spin'
}
ask() { $b wget -q -T 20 -O "$out/parca/$1" "http://127.0.0.1:7070/api/profiles/$2" 2>/dev/null; }
ask_all() {
	local name path all=0
	while read -r name path; do
		[ "$name" = series ] || answered "$name" || { ask "$name" "$path" && answered "$name"; } || all=1
	done <"$folder/queries"
	return $all
}
restarts() { pods 2>/dev/null | grep -o '"restartCount":[0-9]*' | sort -t: -k2 -n | tail -1 | cut -d: -f2; }
gone=$(sed -nE 's|.*"(p[0-9]+)".*|\1|p' "$folder/late/gone.yaml")
for _ in $(seq 200); do
	ask_all && [ "$(restarts)" -ge 2 ] && [ ! -e /etc/kubelet/pods/gone.yaml ] && break
	if [ -e /etc/kubelet/pods/gone.yaml ] && answered "$gone"; then
		rm /etc/kubelet/pods/gone.yaml /etc/kubelet/pods/twin-b.yaml
	fi
	sleep 2
done
# All series that there are by now, the last window of those that have gone included.
sleep 15
while read -r name path; do
	ask "$name" "$path"
done <"$folder/queries"
pods >"$out/pods.json"
sed 's/"podIP":"/\n&/g' "$out/pods.json" | sed -nE 's/^"podIP":"([0-9.]+)".*/\1/p' | sort -u >"$out/addresses"
while read -r address; do
	$b wget -q -T 10 -O "$out/metrics" "http://$address:7071/metrics" 2>/dev/null && break
done <"$out/addresses"
cp -r /var/lib/fathom/profiles "$out/profiles"
group=/sys/fs/cgroup$(sed 's/^0:://' "/proc/$agent/cgroup")
cat "$group/memory.peak" >"$out/memory.peak"
cat "$group/memory.stat" >"$out/memory.stat"
cat "$group/cpu.stat" >"$out/cpu.stat"
cp /var/log/pods/*fathom*/fathom/*.log "$out/agent.log"
# Told to stop, it does.
begin=$(cut -d' ' -f1 /proc/uptime)
rm /etc/kubelet/pods/*
for _ in $(seq 60); do
	[ -d "/proc/$agent" ] || break
	sleep .5
done
[ -d "/proc/$agent" ] || echo "$begin $(cut -d' ' -f1 /proc/uptime)" >"$out/stopped"
for _ in $(seq 20); do
	[ "$(ctr -n k8s.io task ls -q | wc -l)" = 0 ] && break
	sleep 1
done
exit 0
