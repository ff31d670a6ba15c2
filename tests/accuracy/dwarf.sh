#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# May run beside another test: it judges no shares of the machine's time.
# dwarf.sh [BUILD_DIR]: inline chains, files, lines and columns against llvm-symbolizer, at the rows of
# the line tables of programs built here with gcc, clang and rustc in several ways. dwarf_compare.py
# defines what counts as equal. FULL=1 compares all rows. A failed build is a failure; missing compilers
# are named at the end, `N passed, N failed[, without NAMES]`.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=${1:-${FATHOM_BUILD:-build}}
fathom=${FATHOM:-$build/fathom}
sources=$PWD/tests/accuracy/dwarf
limit=${FULL:+100000000}
limit=${limit:-6000}

for tool in llvm-symbolizer-14 llvm-dwarfdump-14 python3; do
	command -v $tool >/dev/null || { echo "$tool is missing" && exit 77; }
done
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT

passed=0
failed=0
missing=
have() { # TOOL
	command -v "$1" >/dev/null && return
	case " $missing " in *" $1 "*) ;; *) missing="$missing $1" ;; esac
	return 1
}

not_built() { # NAME
	failed=$((failed + 1))
	echo "FAIL $1 is not built: $(head -1 "$scratch/errors")"
}

compare() { # NAME BINARY [DEBUG]
	local report
	if report=$(python3 tests/accuracy/dwarf_compare.py "$fathom" "$2" "$limit" ${3:+"$3"} 2>&1); then
		passed=$((passed + 1))
		echo "ok   $1: $report"
	else
		failed=$((failed + 1))
		echo "FAIL $1: $report"
	fi
}

try() { # NAME COMMAND...: builds $scratch/program and compares
	local name=$1
	shift
	rm -f "$scratch/program"
	if ! "$@" -o "$scratch/program" 2>"$scratch/errors"; then
		not_built "$name"
		return
	fi
	compare "$name" "$scratch/program"
}

discard="-ffunction-sections -Wl,--gc-sections"
for compiler in gcc clang; do
	have $compiler || continue
	cxx=${compiler/%gcc/g++}
	cxx=${cxx/%clang/clang++}
	for version in 2 3 4 5; do
		for flags in "" "-flto" "-static" "-fPIE -pie" "-no-pie $discard" "-O3 -gdwarf64"; do
			[ $version -lt 4 ] && [ -n "$flags" ] && continue
			set -- -O2 -g "-gdwarf-$version" $flags
			try "$compiler C $*" $compiler "$@" "$sources/one.c" "$sources/two.c"
			try "$compiler C++ $*" $cxx "$@" "$sources/shapes.cc"
		done
	done
	# A relative compilation directory, and type units.
	try "$compiler C relative" $compiler -O2 -g "-ffile-prefix-map=$PWD=./here" \
		"$sources/one.c" "$sources/two.c"
	try "$compiler C++ type units" $cxx -O2 -g -fdebug-types-section "$sources/shapes.cc"
	try "$compiler C++ compressed" $cxx -O2 -g -gz=zlib "$sources/shapes.cc"
done
# Split DWARF, in .dwo files or in a package: llvm-dwp packs version 5 of clang, binutils' dwp only
# version 4.
split() { # NAME DWP|- COMPILER FLAGS...
	local name=$1 dwp=$2 cxx=$3
	shift 3
	have "$cxx" && { [ "$dwp" = - ] || have "$dwp"; } || return
	rm -f "$scratch"/*.dwo "$scratch"/*.dwp
	if (cd "$scratch" && "$cxx" -O2 -g -gsplit-dwarf "$@" -c "$sources/shapes.cc" -o shapes.o &&
		"$cxx" -o program shapes.o &&
		if [ "$dwp" != - ]; then
			timeout 60 $dwp -e program -o program.dwp && rm -f ./*.dwo
		fi) 2>"$scratch/errors" </dev/null; then
		compare "$name" "$scratch/program"
	else
		not_built "$name"
	fi
	rm -f "$scratch"/*.dwp
}
split "g++ -gdwarf-4 dwp" dwp g++ -gdwarf-4
split "g++ -gdwarf-4 llvm-dwp" llvm-dwp-14 g++ -gdwarf-4
for version in 4 5; do
	split "g++ -gdwarf-$version dwo" - g++ -gdwarf-$version
	split "clang++ -gdwarf-$version dwo" - clang++ -gdwarf-$version
	split "clang++ -gdwarf-$version llvm-dwp" llvm-dwp-14 clang++ -gdwarf-$version
	split "clang++ -gdwarf-$version llvm-dwp, no inlining in skeletons" llvm-dwp-14 clang++ \
		-gdwarf-$version -fno-split-dwarf-inlining
done
if have rustc; then
	for flags in "-O" "-Copt-level=0" "-O -Clto=fat" "-O -Clto=thin -Ccodegen-units=4"; do
		try "rustc $flags" rustc -g $flags "$sources/shapes.rs"
	done
fi
for library in /usr/lib/debug/.build-id/*/*.debug; do # libc6-dbg, where it is installed
	[ "$(stat -c %s "$library" 2>/dev/null || echo 0)" -gt 3000000 ] && compare "$library" "$library"
done
# The stripped library together with that file (libc6-dbg, any -dbgsym package).
for library in ${FULL:+/usr/lib/*/lib*.so*}; do
	id=$(readelf -n "$library" 2>/dev/null | sed -n 's/.*Build ID: //p')
	debug=/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug
	[ -L "$library" ] || [ ! -e "$debug" ] || compare "$library and its debug file" "$library" "$debug"
done

echo "$passed passed, $failed failed${missing:+, without$missing}"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
