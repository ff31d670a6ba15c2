#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# usage: [CGROUP=v1|hybrid] [APPARMOR=0] containerd_guest.sh GUEST.py
# Runs tests/vm/GUEST.py on 6.12 with cgroup v2, or on 6.1 with what CGROUP names (vm.sh), with Debian's containerd,
# runc and crun, which are unpacked and not installed. Exit status 77 when qemu is missing or the packages cannot be fetched.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$(cd "${FATHOM_BUILD:-build}" && pwd)
cache=${VM_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/vm-sh}
cgroup=${CGROUP:-v2}
kernel=${KERNELS:-6.12}
if [ "$cgroup" != v2 ]; then
	kernel=6.1
fi
guest=$1

for tool in qemu-system-x86_64 depmod cpio xz; do
	if ! command -v "$tool" >/dev/null; then
		echo "needs $tool (apt-get install qemu-system-x86 kmod cpio xz-utils)"
		exit 77
	fi
done
if [[ $(uname -m) != x86_64 ]]; then
	echo "boots x86_64 kernels with the programs of this machine"
	exit 77
fi
if ! why=$(timeout 300 tests/vm/vm.sh --kernel "$kernel" --fetch-only 2>&1 >/dev/null); then
	echo "$kernel: cannot be fetched: ${why##*$'\n'}"
	exit 77
fi

containers=$cache/containers-apparmor
if [ ! -e "$containers/done" ]; then
	mkdir -p "$containers"
	APT_CONFIG=$(tests/vm/aptroot.sh "$(cd "$cache" && pwd)" amd64 bookworm)
	export APT_CONFIG
	(cd "$containers" && apt-get -qq download containerd runc crun libyajl2 apparmor) ||
		{ echo "containerd cannot be fetched" && exit 77; }
	for package in "$containers"/*.deb; do
		dpkg-deb -x "$package" "$containers"
	done
	touch "$containers/done"
fi

make -s "O=$(realpath --relative-to=. "$build")" image >/dev/null
mkdir -p "$build/tests/cache"
programs=$(FATHOM_BUILD=$build PYTHONPATH=tests/scenario python3 -c '
from fathom import *
static = C.replace("gcc", "gcc -static", 1)
for name in "chain", "pause", "named":
    print("%s=%s" % (name.upper(), built(name + ".c", name + "-static", static)))')
log=$build/vm-${guest%_guest.py}-$cgroup.log
# Go programs start slowly here, and the first index builds beside them.
# shellcheck disable=SC2016 # the guest's shell expands these
if tests/vm/vm.sh --kernel "$kernel" --cgroup "$cgroup" --append "apparmor=${APPARMOR:-1}" --smp 2 --mem 2G --share-ro "$PWD" --share-ro "$build" --share-ro "$containers" \
	${PARCA_BIN:+--share-ro "$(dirname "$PARCA_BIN")"} --timeout "${TIMEOUT:-1500}" --quiet -- env $programs "PARCA_BIN=${PARCA_BIN:-}" "FATHOM_BUILD=$build" \
	LD_LIBRARY_PATH="$containers/usr/lib/x86_64-linux-gnu" bash -c '
	/vm/bin/busybox mount -t tmpfs none "$FATHOM_BUILD/tests/cache"
	# containerd uses its AppArmor profile if this is there; /sbin is a link into the machine'"'"'s /usr.
	rm /sbin && mkdir /sbin && ln -s /usr/sbin/* "$2/sbin/apparmor_parser" /sbin/
	mkdir -p /etc/apparmor && : >/etc/apparmor/parser.conf # without it the parser says so where containerd expects a version
	mkdir -p /var/lib/containerd /run/containerd
	export PATH="$2/usr/bin:$2/usr/sbin:$PATH"
	exec /usr/bin/python3 "$1"' \
	guest "$PWD/tests/vm/$guest" "$containers" >"$log" 2>&1; then
	tail -n 1 "$log"
else
	grep -v '^ok ' "$log" || true
	exit 1
fi
