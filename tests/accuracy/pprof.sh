#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# May run beside another test: it judges no shares of the machine's time.
# pprof.sh [BUILD_DIR]: our pprof files against their readers: google/pprof's parser, `go tool pprof`, and
# the rules of Parca and Pyroscope (tests/pprofcheck). First a file of known content with one of
# everything (tests/unit/test_pprof_file.c), then one recorded on this machine.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=${1:-${FATHOM_BUILD:-build}}
command -v go > /dev/null || { echo "no go"; exit 77; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export PPROF_TMPDIR=$scratch
passed=0 failed=0

ok() { # NAME COMMAND...
	local name=$1
	shift
	if "$@" > "$scratch/out" 2>&1; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "FAIL $name"
		head -20 "$scratch/out"
	fi
}
has() { # FILE 'PATTERN' 'PPROF OPTIONS'
	go tool pprof -symbolize=none $3 "$1" > "$scratch/has" 2> "$scratch/err"
	grep -Eq -- "$2" "$scratch/has" || { cat "$scratch/err" "$scratch/has"; return 1; }
}

ok "pprofcheck builds" env -C tests/pprofcheck go build -o "$scratch/pprofcheck" .

fixture=$scratch/fixture.pb.gz
ok "fixture's writer builds" make -s "O=$build" "$build/tests/unit/test_pprof_file"
ok "fixture is written" env PPROF_FIXTURE="$fixture" "$build/tests/unit/test_pprof_file"
ok "fixture keeps every rule" "$scratch/pprofcheck" -upload "$fixture"
ok "default type is cpu" has "$fixture" '^Type: cpu' -top
ok "values are whole" has "$fixture" 'Total samples = 1000ms' -top
ok "samples are counted" has "$fixture" 'Total samples = 100 ' '-top -sample_index=samples'
ok "inlined calls are marked" has "$fixture" ' ns::inner\(int\) \(inline\)' -top
ok "the function around has all" has "$fixture" '1000ms +100% +ns::outer\(int\)' '-top -cum'
ok "lines and start lines" has "$fixture" 'inner\(int\) /src/inner.h:7(:3)? s=5\(_ZN2ns5innerEi\)' -raw
ok "callers have their call line" has "$fixture" 'outer\(int\) /src/outer.cc:42(:9)? s=30' -raw
ok "mapping and flags" has "$fixture" \
	'0x401000/0x402000/0x1000 /opt/fathom-test/program deadbeef \[FN\]\[FL\]\[LN\]\[IN\]' -raw
ok "no flags without names" has "$fixture" 'libsecret.so.1 0badcafe *$' -raw
ok "unknown addresses stay" has "$fixture" ': 0x2f37 M=2 *$' -raw
ok "unknown code shows its module" has "$fixture" '\[libsecret.so.1\]' -top
ok "cpu 0 is kept" has "$fixture" 'cpu:\[0 id\] goid:\[17 id\] pid:\[4242 id\]' -raw
ok "goids are tags" has "$fixture" '340(\.0)?ms.*: 17$' -tags
ok "one goroutine is found" has "$fixture" 'for 340ms, 34.00% of 1000ms' '-top -tagfocus=goid=17'
ok "names are UTF-8" has "$fixture" 'café\?' -tags
# The checks must fail for a bad file.
head -c 600 "$fixture" > "$scratch/cut.pb.gz"
ok "a cut file is refused" sh -c "! '$scratch/pprofcheck' '$scratch/cut.pb.gz'"

if [ -x "$build/fathom" ] && [ "$(id -u)" = 0 ]; then
	recorded=$scratch/recorded.pb.gz
	sh -c 'while :; do :; done' &
	spinner=$!
	ok "fathom record" "$build/fathom" record -F 199 -d 3 -o "$recorded"
	kill "$spinner"
	ok "recording keeps every rule" "$scratch/pprofcheck" "$recorded"
	ok "recording has a kernel mapping" has "$recorded" '\[kernel.kallsyms\]' -raw
	ok "recording names processes" has "$recorded" "^ *comm: Total" -tags
	ok "recording finds the process" has "$recorded" '^Type: cpu' "-top -tagfocus=pid=$spinner"
fi
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
