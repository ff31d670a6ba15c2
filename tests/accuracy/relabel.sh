#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# May run beside another test: it judges no shares of the machine's time.
# relabel.sh [BUILD_DIR]: relabelling against Prometheus' own package (tests/relabelcheck) on random
# rules and labels: 20,000 of a fixed seed, with FULL=1 300,000 of a new one. Also checks that
# tests/unit/relabel.corpus is what the generator writes today.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=${1:-${FATHOM_BUILD:-build}}
command -v go > /dev/null || { echo "no go"; exit 77; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
seed=2 count=20000
[ -n "${FULL:-}" ] && seed=$RANDOM count=300000

env -C tests/relabelcheck go build -o "$scratch/relabelcheck" . || exit 1
make -s "O=$build" "$build/tests/unit/test_relabel_corpus" || exit 1
"$scratch/relabelcheck" 1 2500 | cmp - tests/unit/relabel.corpus ||
	{ echo "tests/unit/relabel.corpus is not what relabelcheck 1 2500 writes"; exit 1; }
"$scratch/relabelcheck" "$seed" "$count" > "$scratch/corpus" || exit 1
RELABEL_CORPUS=$scratch/corpus "$build/tests/unit/test_relabel_corpus" > "$scratch/out" 2>&1
status=$?
[ "$status" = 0 ] || cat "$scratch/out"
echo "seed $seed:$(sed -n 's/^#//p' "$scratch/out")"
exit "$status"
