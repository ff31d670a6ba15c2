# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Makes a C header with relocatable structs from the list kernel.types.

BEGIN {
	print "/* Generated from bpf/kernel.types. */"
	print "#pragma once"
	print "#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)"
}

function finish()
{
	if (inside)
		print "};"
	inside = 0
}

/^[ \t]*(#|$)/ {
	next
}

/^[A-Za-z_][A-Za-z0-9_]*$/ {
	finish()
	print "struct " $1 " {"
	inside = 1
	next
}

/^\t[^;]/ && inside {
	print $0 ";"
	next
}

{
	printf "%s:%d: neither a struct's name nor a field\n", FILENAME, FNR > "/dev/stderr"
	failed = 1
	exit 1
}

END {
	finish()
	print "#pragma clang attribute pop"
	exit failed
}
