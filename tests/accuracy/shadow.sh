#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# May run beside another test: it judges no shares of the machine's time.
# shadow.sh [BUILD_DIR]: each frame of the stacks of foreign programs that are recorded while they are run
# instruction by instruction, against the calls and returns that were seen. shadow_stacks.py defines what
# counts as right, and has the options. Ends with `N passed, N failed`.
set -u
cd "$(dirname "$0")/../.." || exit 1
export FATHOM_BUILD=${1:-${FATHOM_BUILD:-build}}

[ "$(uname -m)" = x86_64 ] || { echo "shadow_stack.c knows x86_64 only" && exit 77; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cc -O2 -std=gnu17 -D_GNU_SOURCE -Wall -Wextra -Werror -o "$work/shadow_stack" tests/accuracy/shadow_stack.c || exit 1
if python3 tests/accuracy/shadow_stacks.py "$work/shadow_stack"; then
	echo "1 passed, 0 failed"
else
	echo "0 passed, 1 failed"
	exit 1
fi
