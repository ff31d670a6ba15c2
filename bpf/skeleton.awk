# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Makes the skeleton that bpftool wrote (the second file) carry its object compressed: the first file
# is `od -An -v -tx1` of the object's gzip. It is opened by what inflates it, agent/sampler/collect/skeleton.h.

FNR == NR {
	count += NF
	line = ""
	for (i = 1; i <= NF; i++)
		line = line "\\x" $i
	compressed = compressed "\t\"" line "\"\n"
	next
}

/^#include <bpf\/libbpf.h>/ {
	print
	print "#include \"agent/sampler/collect/skeleton.h\""
	next
}

# The object: a string over many lines, the first and the last of which hold code as well.
/"\\$/ {
	sub(/"\\$/, "")
	print
	printf "%s\t;\n", compressed
	inside = 1
	strings++
	next
}
inside {
	inside = !/";$/
	next
}

# Its size where it is a number, and not that of the string.
/sz = [0-9]+;/ && !/prog_skel_sz|map_skel_sz/ {
	sub(/sz = [0-9]+;/, "sz = " count ";")
}

sub(/bpf_object__open_skeleton\(/, "skeleton_open(") {
	calls++
}

{ print }

END {
	if (!count || strings != 1 || calls != 1) {
		print "skeleton.awk: this is not what bpftool is known to write" > "/dev/stderr"
		exit 1
	}
}
