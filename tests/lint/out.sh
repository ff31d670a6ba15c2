#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# However O and `tests/run --build` spell a folder, it is the same one: otherwise objects would be made
# again beside files of dependencies that know them by another name.
set -u
cd "$(dirname "$0")/../.." || exit 1
bad=0

by_make() { # FOLDER
	make -s --no-print-directory --eval='spelled: ; @echo $(O)' "O=$1" spelled
}

by_run() { # FOLDER
	PYTHONDONTWRITEBYTECODE=1 python3 - "$1" <<-'END'
		import importlib.machinery
		import sys

		print(importlib.machinery.SourceFileLoader("run", "tests/run").load_module().as_make_spells(sys.argv[1]))
	END
}

# $links/here is a link to this folder.
links=$(mktemp -d)
trap 'rm -rf "$links"' EXIT
ln -s "$PWD" "$links/here"
while read -r given wanted; do
	for who in by_make by_run; do
		got=$($who "$given")
		[ "$got" = "$wanted" ] || { echo "$who: $given is $got, not $wanted" && bad=1; }
	done
done <<END
build/other build/other
./build/other/ build/other
$PWD/build/other build/other
$PWD/tests/../build/other build/other
$links/here/build/other build/other
/nonexistent/../tmp/other /tmp/other
END
exit $bad
