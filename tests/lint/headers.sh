#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Each header compiles alone, first in its file. $1 is the compiler with the project's flags.
set -eu -o pipefail
cd "$(dirname "$0")/../.."
export compile=$1
case $(uname -m) in
x86_64) export bpf_arch=x86 other_arch=arm64 ;;
*) export bpf_arch=arm64 other_arch=x86 ;;
esac
# BPF headers need the kernel's types and libbpf's helpers first, which do not include one another.
export bpf_preamble='#include <stdbool.h>
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include "bpf/kernel_types.h"'

check_header() {
	local header=$1 errors preamble=
	local -a command
	eval "command=($compile)"
	case $header in
	*_"$other_arch".bpf.h) return 0 ;;
	*.bpf.h)
		preamble=$bpf_preamble
		command=("${CLANG:-clang}" -target bpf -D__BPF__ "-D__TARGET_ARCH_$bpf_arch" -O2 -g -I.
			-Ibuild/gen -idirafter "/usr/include/$(uname -m)-linux-gnu")
		;;
	esac
	errors=$(printf '%s\n#include "%s"\n' "$preamble" "$header" |
		"${command[@]}" -Werror -Wno-unused -fsyntax-only -x c - 2>&1) && return 0
	printf '%s: does not compile alone\n%s\n' "$header" "$(head -n 5 <<<"$errors")"
	return 1
}
export -f check_header

git ls-files -co --exclude-standard -- '*.h' | grep -v '^tests/workloads/' |
	xargs -r -P "$(nproc)" -I '{}' bash -c 'check_header "$1"' _ '{}' || exit 1
