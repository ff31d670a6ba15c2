#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# May run beside another test: it judges no shares of the machine's time.
# The newest release of Go that the module proxy has must be one whose goroutines can be read: stripped, by
# the table of symbolizer/indexer/go/go_facts.c, and with DWARF, which must not contradict it. Skips
# itself without a proxy.
#
#   tests/accuracy/go_newest.sh [BUILD_DIR]
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${1:-${FATHOM_BUILD:-build}}
[[ $build == /* ]] || build=$root/$build
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export GOFLAGS=-mod=mod GOTOOLCHAIN=local CGO_ENABLED=0

skip() {
	echo "$1"
	exit 77
}

command -v go >/dev/null || skip "go is not installed"
cd "$work" || exit 1
printf 'module newest\n\ngo 1.21\n' >go.mod
printf 'package main\n\nfunc main() {}\n' >main.go
timeout 60 go list -m -versions golang.org/toolchain >versions 2>list.log ||
	skip "no module proxy answers: $(tail -n 1 list.log)"
# Candidates (1.28rc1) are no releases.
newest=$(tr ' ' '\n' <versions | sed -n 's/^v0\.0\.1-go\(1\.[0-9]*\.[0-9]*\)\.linux-amd64$/\1/p' |
	sort -V | tail -n 1)
[[ -n $newest ]] || skip "the module proxy has no toolchains"

# shellcheck disable=SC2046
cc -std=gnu17 -D_GNU_SOURCE -I"$root" -o go_facts "$root/tests/accuracy/go_facts.c" "$build/libfathom.a" \
	-Wl,--as-needed $(make -s -C "$root" ldlibs) || exit 1

export GOTOOLCHAIN=go$newest
timeout 300 go version >version 2>&1 || skip "go $newest cannot be fetched: $(tail -n 1 version)"
failed=0
for flags in "" "-s -w"; do
	go build -ldflags="$flags" -o program . || exit 1
	facts=$(./go_facts program) || exit 1
	[[ $facts == "go${newest%.*} supported=1 "* ]] || failed=1
	echo "    $facts"
done
((failed == 0)) || {
	echo "Go $newest is not in the table of symbolizer/indexer/go/go_facts.c, or contradicts it"
	exit 1
}
echo "Go $newest, the newest on the module proxy, is known"
