#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Each header compiles alone, first in its file. $1 is the compiler with the project's flags.
set -eu
cd "$(dirname "$0")/../.."
compile=$1

check_header() {
	local header=$1 errors
	local -a command
	case $header in
	bpf/abi/*) eval "command=($compile)" ;;
	bpf/*) # BPF's own headers exist for one target only
		command=("${CLANG:-clang}" -target bpf -D__BPF__ -D__TARGET_ARCH_x86 -O2 -g -I. -Ibuild/gen
			-idirafter "/usr/include/$(uname -m)-linux-gnu" -Wno-unused)
		;;
	*) eval "command=($compile)" ;;
	esac
	errors=$(printf '#include "%s"\n' "$header" |
		"${command[@]}" -Werror -Wno-unused-function -fsyntax-only -x c - 2>&1) && return 0
	printf '%s: does not compile alone\n%s\n' "$header" "$(head -5 <<<"$errors")"
	return 1
}
export -f check_header
export compile

git ls-files -co --exclude-standard -- '*.h' | grep -v '^tests/workloads/' |
	xargs -r -P "$(nproc)" -I '{}' bash -c 'check_header "$1"' _ '{}' || exit 1
