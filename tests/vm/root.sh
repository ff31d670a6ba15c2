#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# root.sh --arch ARCH [--suite bookworm] [--cache DIR] PACKAGE…
# Unpacks the packages and all they depend on (no maintainer script runs) into
# CACHE/roots/ARCH-SUITE: the --root of vm.sh, and with -dev packages a --sysroot to cross-compile with.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
arch=arm64 suite=bookworm
cache=${VM_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/vm-sh}
while (($#)); do
	case $1 in
	--arch) arch=$2; shift 2 ;;
	--suite) suite=$2; shift 2 ;;
	--cache) cache=$2; shift 2 ;;
	-*) echo "root.sh: unknown option $1" >&2; exit 2 ;;
	*) break ;;
	esac
done
mkdir -p "$cache"
cache=$(cd "$cache" && pwd)
APT_CONFIG=$("$here/aptroot.sh" "$cache" "$arch" "$suite")
export APT_CONFIG
r=$cache/roots/$arch-$suite
mkdir -p "$r/usr" "$r/.unpacked"
for d in bin sbin lib lib64; do
	mkdir -p "$r/usr/$d"
	[[ -e $r/$d || -L $r/$d ]] || ln -s "usr/$d" "$r/$d"
done
pkgs=(libc6 libgcc-s1 libstdc++6 bash dash coreutils grep sed gawk procps libc-bin base-files base-passwd "$@")
apt-get -qq -y --download-only -o Debug::NoLocking=1 install "${pkgs[@]}" 2>&1 | sed -E 's#https?://[^ ]*/##' >&2
for deb in "$cache/apt/$arch-$suite"/archives/*.deb; do
	n=$(basename "$deb" .deb)
	[[ -e $r/.unpacked/$n ]] && continue
	dpkg-deb --fsys-tarfile "$deb" | tar -x --keep-directory-symlink -C "$r" --exclude './usr/share/doc/*' --exclude './usr/share/man/*' --exclude './usr/share/locale/*'
	touch "$r/.unpacked/$n"
done
# what the maintainer scripts would have left
[[ -s $r/etc/passwd ]] || cp "$r/usr/share/base-passwd/passwd.master" "$r/etc/passwd"
[[ -s $r/etc/group ]] || cp "$r/usr/share/base-passwd/group.master" "$r/etc/group"
[[ -e $r/usr/bin/sh ]] || ln -s bash "$r/usr/bin/sh"
[[ -e $r/usr/bin/awk ]] || ln -s gawk "$r/usr/bin/awk"
# absolute links of -dev packages must not point at the host
find "$r/usr/lib" -type l -lname '/*' | while read -r l; do
	ln -sfn "$(realpath -m --relative-to="$(dirname "$l")" "$r$(readlink "$l")")" "$l"
done
echo "$r"
