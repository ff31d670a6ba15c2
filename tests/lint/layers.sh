#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Who may include whom (docs/design.md, section 3): the folder is the architecture. A rule is
# `ROOM: prefixes`; a room's own headers are always allowed. Prefixes match the path in the
# #include; `*` allows everything (composition).
set -eu
cd "$(dirname "$0")/../.."

rules='
base: base/
bpf: bpf/
symbolizer: base/ symbolizer/ bpf/abi/unwind.h
symbolizer/index: base/ symbolizer/ bpf/abi/unwind.h
pprof: base/ proto/
agent/loop: base/
agent/process: base/
agent/profile: base/ bpf/abi/
agent/serve: base/ agent/loop/
agent/store: base/
agent/collect: base/ agent/loop/ bpf/abi/ bpf/*.skel.h
agent/unwind: base/ agent/process/ bpf/abi/ bpf/unwind.bpf.h symbolizer/index/
agent/golang: base/ bpf/abi/ symbolizer/
agent/metadata: base/ agent/loop/ proto/
agent/export: base/ agent/loop/ proto/
agent/report: base/ agent/process/ agent/profile/ symbolizer/ pprof/
agent/top: base/ agent/loop/ agent/process/ agent/profile/ agent/report/
agent/commands: *
agent/daemon: *
agent: *
'

allowed_for() { # the prefixes of a room, nothing where there is no rule
	sed -n "s|^$1: ||p" <<<"$rules"
}

permits() { # PREFIXES INCLUDED
	local prefix
	local IFS=' '
	set -f
	for prefix in $1; do
		# shellcheck disable=SC2053 # patterns are meant
		[[ $2 == $prefix || $2 == $prefix* ]] && return 0
	done
	return 1
}

bad=0
complain() {
	echo "$1"
	bad=1
}

while IFS=: read -r file line included; do
	room=$(dirname "$file")
	case $room in bpf/*) room=bpf ;; esac
	allowed=$(allowed_for "$room")
	if [ -z "$allowed" ]; then
		complain "$file: the folder $room has no rule in tests/lint/layers.sh"
		continue
	fi
	case $included in
	*/*) ;;
	*) complain "$file:$line: write \"$included\" from the root of the project" && continue ;;
	esac
	permits "$room/ $allowed" "$included" ||
		complain "$file:$line: $room must not know $included (may: $allowed)"
done < <(git ls-files -co --exclude-standard -- '*.c' '*.h' | grep -v '^tests/' |
	xargs -r grep -nH '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' |
	sed -E 's/:[[:space:]]*#[[:space:]]*include[[:space:]]*"([^"]*)".*/:\1/')
exit $bad
