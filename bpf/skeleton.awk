# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Puts the compressed object -v object=FILE in place of the bytes that bpftool has put into a skeleton.
# Fails if the skeleton is not as bpftool 7 writes it.

/^#include <bpf\/libbpf.h>/ {
	print
	print "#include \"agent/sampler/collect/embedded_object.h\""
	included++
	next
}

# Its declaration, then its definition, whose body goes up to the brace.
/^static inline const void \*[a-z_]+__elf_bytes\(size_t \*sz\);$/ {
	name = $5
	sub(/^\*/, "", name)
	sub(/__elf_bytes.*$/, "", name)
	print "__asm__(\".section .rodata\\n\""
	print "\t\"" name "_object:\\n\""
	print "\t\".incbin \\\"" object "\\\"\\n\""
	print "\t\"" name "_object_end:\\n\""
	print "\t\".previous\\n\");"
	# Hidden: else gcc for aarch64 takes both addresses from the global offset table, where the
	# linker ignores that they are at different offsets of one section.
	print "extern const char " name "_object[] __attribute__((visibility(\"hidden\")));"
	print "extern const char " name "_object_end[] __attribute__((visibility(\"hidden\")));"
}

/^static inline const void \*[a-z_]+__elf_bytes\(size_t \*sz\)$/ {
	print
	print "{"
	print "\treturn embedded_object(" name "_object, (size_t)(" name "_object_end - " name "_object), sz);"
	print "}"
	embedded++
	skipping = 1
	next
}

skipping {
	if ($0 == "}")
		skipping = 0
	next
}

/^\ts->data = \(void \*\)[a-z_]+__elf_bytes\(&s->data_sz\);$/ {
	print
	print "\tif (!s->data) {"
	print "\t\terr = -ENOMEM;"
	print "\t\tgoto err;"
	print "\t}"
	expanded++
	next
}

/^\terr = bpf_object__open_skeleton\(obj->skeleton, opts\);$/ {
	print
	print "\tfree((void *)obj->skeleton->data);"
	print "\tobj->skeleton->data = NULL;"
	freed++
	next
}

{ print }

END {
	if (included != 1 || embedded != 1 || expanded != 1 || freed != 1) {
		print "skeleton.awk: a skeleton of another form, see above" > "/dev/stderr"
		exit 1
	}
}
