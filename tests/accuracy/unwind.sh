#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# May run beside another test: it judges no shares of the machine's time.
# unwind.sh [BUILD_DIR]: unwind tables against libdw, row by row, for system libraries, the vDSO and
# programs built here; rules that are read from instructions, likewise. unwind_compare.c and bare_compare.c
# define what counts as equal. FULL=1 compares each address,
# and the largest files of this machine. Ends with `N passed, N failed`.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=${1:-${FATHOM_BUILD:-build}}
here=tests/accuracy
sources=$PWD/$here/unwind
full=${FULL:-}

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
for tool in unwind_compare bare_compare; do
	# shellcheck disable=SC2046
	cc -O2 -std=gnu17 -D_GNU_SOURCE -I. -o "$work/$tool" "$here/$tool.c" "$build/libfathom.a" \
		-Wl,--as-needed $(make -s ldlibs) || exit 1
done

passed=0
failed=0
verdict() { # STATUS TEXT
	if [ "$1" = 0 ]; then
		passed=$((passed + 1))
		echo "ok   $2"
	else
		failed=$((failed + 1))
		echo "FAIL $2"
	fi
}

compare() { # NAME FILE [MINIMUM]: there must be at least so many rows
	local report
	if [ ! -r "$2" ]; then
		echo "skip $1: no such file"
		return
	fi
	report=$("$work/unwind_compare" "$2" ${full:+all} 2>&1)
	verdict $? "$1: ${report//"$2: "/}"
	if [ -n "${3:-}" ]; then
		[[ $report =~ :\ ([0-9]+)\ rows ]] && [ "${BASH_REMATCH[1]}" -ge "$3" ]
		verdict $? "$1: has at least $3 rows"
	fi
}

try() { # NAME MINIMUM COMMAND...: builds $work/program and compares
	local name=$1 minimum=$2
	shift 2
	rm -f "$work/program"
	if ! command -v "$1" >/dev/null; then
		echo "skip $name: no $1"
	elif ! "$@" -o "$work/program" 2>"$work/errors"; then
		verdict 1 "$name: $(head -1 "$work/errors")"
	else
		compare "$name" "$work/program" "$minimum"
	fi
}

library() { # NAME: its path as the dynamic linker sees it
	ldconfig -p | awk -v name="$1" '$1 == name { print $NF; exit }'
}

bare() { # FILE MINIMUM: at least so many rules of instructions were compared
	local report
	report=$("$work/bare_compare" "$1" 2>&1)
	verdict $? "from instructions: $report"
	[[ $report =~ \ ([0-9]+)\ compared ]] && [ "${BASH_REMATCH[1]}" -ge "$2" ]
	verdict $? "from instructions: at least $2 rules compared"
}

vdso() { # FILE: our own, from our memory
	python3 - "$1" <<-'END'
		import sys
		line = next(l for l in open("/proc/self/maps") if "[vdso]" in l)
		low, high = (int(x, 16) for x in line.split()[0].split("-"))
		with open("/proc/self/mem", "rb") as memory:
		    memory.seek(low)
		    open(sys.argv[1], "wb").write(memory.read(high - low))
	END
}

libc=$(library libc.so.6)
compare libc "$libc" 10000
compare ld.so "$(ldd /bin/true | awk '/ld-linux/ { print $1 }')" 1000
compare libstdc++ "$(library libstdc++.so.6)" 10000
compare libcrypto "$(library libcrypto.so.3)" 10000
vdso "$work/vdso" && compare vdso "$work/vdso" 20

c=$sources/shapes.c
for compiler in gcc clang; do
	for flags in -O0 "-O2 -mavx2 -fomit-frame-pointer" "-O2 -fcf-protection -fPIE -pie" \
		"-O2 -static" "-Os -fno-omit-frame-pointer -no-pie" "-O2 -fuse-ld=gold"; do
		# shellcheck disable=SC2086
		try "$compiler $flags" 25 $compiler $flags "$c"
	done
done
# .debug_frame has the functions that .eh_frame lacks.
try ".debug_frame" 25 gcc -O2 -g -fno-asynchronous-unwind-tables "$c"
try ".debug_frame, compressed" 25 gcc -O2 -g -gz -fno-asynchronous-unwind-tables "$c"
try "no .eh_frame_hdr" 25 gcc -O2 -Wl,--no-eh-frame-hdr "$c"
if [ "$(uname -m)" = x86_64 ]; then
	try "segments far apart" 25 gcc -O2 -no-pie -Wl,--section-start=far_code=0x40123450 \
		"$c" "$sources/far.s"
	try "musl" 25 musl-gcc -O2 -static -g "$c"
	# Not libc and libcrypto: assembly of theirs pushes registers and does not say so in its entries.
	bare "$(library libstdc++.so.6)" 150000
	bare "$(library libdw.so.1)" 70000
	bare /usr/bin/perl 200000
	bare "$build/fathom" 50000
fi
try rust 1000 rustc -O "$here/dwarf/shapes.rs"

if command -v llvm-bolt-15 >/dev/null; then
	try "to be rewritten by BOLT" 25 gcc -O2 -Wl,--emit-relocs "$c"
	mv "$work/program" "$work/original"
	llvm-bolt-15 "$work/original" -o "$work/program" -reorder-functions=hfsort -split-functions \
		-split-all-cold >"$work/errors" 2>&1
	report=$("$work/unwind_compare" "$work/program" "$work/original" 2>&1)
	verdict $? "rewritten by BOLT: ${report//"$work/program: "/}"
fi

arm=aarch64-linux-gnu
compare "aarch64 libc" /usr/$arm/lib/libc.so.6 10000
compare "aarch64 ld.so" /usr/$arm/lib/ld-linux-aarch64.so.1 1000
bare /usr/$arm/lib/libc.so.6 200000
bare /usr/$arm/lib/libstdc++.so.6 150000
bare /usr/$arm/lib/libm.so.6 60000
for flags in -O2 "-O2 -mbranch-protection=standard" "-O2 -static" "-O0"; do
	# shellcheck disable=SC2086
	try "aarch64 $flags" 25 $arm-gcc $flags "$c"
done

if [ -n "$full" ]; then
	for file in $(realpath -e /usr/lib/*/libLLVM*.so* /usr/lib/*/libnode.so* /usr/bin/node /usr/bin/python3 \
		/bin/bash "$(dirname "$libc")"/*.so.[0-9] 2>/dev/null | sort -u); do
		compare "$file" "$file"
	done
fi

echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
