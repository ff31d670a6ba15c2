#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# May run beside another test: it judges no shares of the machine's time.
# Go programs of several versions and build kinds: the frames of 10,000 random addresses against the program
# itself (runtime.CallersFrames, inlined calls included), the physical function against go tool addr2line, code
# of C against the symbol table, the facts for reading goroutine ids against the DWARF of the unstripped twin.
#
#   tests/accuracy/go.sh [BUILD_DIR]
#
# VERSIONS="1.16.15 local" and KINDS="static pie" select; FULL=1 runs all of both, 100,000 addresses each; SEED=N
# repeats a run's addresses.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${1:-${FATHOM_BUILD:-build}}
[[ $build == /* ]] || build=$root/$build
fathom=${FATHOM:-$build/fathom}
[[ $fathom == /* ]] || fathom=$root/$fathom
here=$root/tests/accuracy
export XDG_CACHE_HOME CGO_CFLAGS=-O2 GOFLAGS=-mod=mod

if [[ -n ${FULL:-} ]]; then
	VERSIONS=${VERSIONS:-1.16.15 1.17.13 1.18.10 1.19.13 1.20.14 1.21.13 1.22.12 1.23.12 1.24.13 1.25.14 1.26.8 1.27.4 local}
	KINDS=${KINDS:-static stripped pie pie-stripped no-sections cgo-net external external-stripped external-pie external-static}
	count=100000
else
	VERSIONS=${VERSIONS:-1.16.15 1.20.14 1.27.4 local}
	LOCAL_KINDS=${KINDS:-static external-stripped} # what was installed here is between versions that have all
	KINDS=${KINDS:-static no-sections pie-stripped cgo-net external-stripped external-pie}
	count=10000
fi

seed=${SEED:-$RANDOM}
command -v go >/dev/null || { echo "go is not installed"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
XDG_CACHE_HOME=$work/cache
passed=0 failed=0

verdict() { # STATUS TEXT
	if [[ $1 == 0 ]]; then
		passed=$((passed + 1)) && echo "ok   $2"
	else
		failed=$((failed + 1)) && echo "FAIL $2"
	fi
}

# Builds $work/prog, and $work/twin, the same with symbols and DWARF.
build_kind() { # KIND
	local cgo=0 flags=() link="" strip=""
	case $1 in
	pie*) flags=(-buildmode=pie) ;;
	cgo-net) cgo=1 flags=(-tags=netonly) link="-linkmode=internal" ;;
	external-pie) cgo=1 flags=(-buildmode=pie) link="-linkmode=external" ;;
	external-static) cgo=1 link="-linkmode=external -extldflags=-static" ;;
	external*) cgo=1 link="-linkmode=external" ;;
	esac
	[[ $1 == *stripped ]] && strip="-s -w"
	[[ $1 == no-sections ]] && strip="-s -w"
	(
		cd "$root/tests/workloads/goinline" || exit 1
		# Go 1.19 mistakes the package index that newer versions left in the cache for its own.
		export CGO_ENABLED=$cgo GODEBUG=goindex=0
		go build "${flags[@]}" -ldflags="$link" -o "$work/twin" . || exit 1
		[[ -n $strip ]] || exec cp "$work/twin" "$work/prog"
		go build "${flags[@]}" -ldflags="$link $strip" -o "$work/prog" .
	) 2>"$work/build.log" || return 1
	[[ $1 != no-sections ]] || llvm-strip --strip-sections "$work/prog"
}

check_frames() { # NAME
	"$work/prog" $count "$seed" >"$work/truth" || { verdict 1 "$1: does not run"; return; }
	python3 "$here/go_frames.py" answers "$work/truth" "$fathom" "$work/prog"
	verdict $? "$1: frames (seed $seed)"
}

check_foreign() { # NAME PROGRAM
	"$2" $count "$seed" >"$work/truth" && python3 "$here/go_frames.py" foreign "$work/truth" "$fathom" "$2"
	verdict $? "$1: code that is not Go's (seed $seed)"
}

check_outermost() { # NAME
	"$work/twin" $count "$seed" >"$work/truth" &&
		python3 "$here/go_frames.py" outermost "$work/truth" "$fathom" "$work/twin"
	verdict $? "$1: physical functions"
}

check_facts() { # NAME
	local mine twins
	mine=$("$work/go_facts" "$work/prog")
	twins=$("$work/go_facts" "$work/twin")
	echo "    $mine"
	[[ $mine == "$twins" && $mine == *supported=1* ]]
	verdict $? "$1: facts"
}

# shellcheck disable=SC2046
cc -std=gnu17 -D_GNU_SOURCE -I"$root" -o "$work/go_facts" "$here/go_facts.c" "$build/libfathom.a" \
	-Wl,--as-needed $(make -s -C "$root" ldlibs) || exit 1

for version in $VERSIONS; do
	export GOTOOLCHAIN=local
	kinds=$KINDS
	if [[ $version == local ]]; then
		kinds=${LOCAL_KINDS:-$KINDS}
	else
		GOTOOLCHAIN=go$version
	fi
	for kind in $kinds; do
		name="go $version $kind"
		if ! build_kind "$kind"; then
			tail -n 3 "$work/build.log"
			verdict 1 "$name: cannot be built"
			continue
		fi
		check_frames "$name"
		[[ $kind == *stripped || $kind == no-sections ]] || check_outermost "$name"
		if [[ $kind == external* ]]; then
			check_foreign "$name" "$work/prog"
			check_foreign "$name with symbols" "$work/twin"
		fi
		check_facts "$name"
	done
done
echo "$passed passed, $failed failed"
((failed == 0))
