/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels since 6.1 have a tree of mappings that BPF can read; on older ones the probe is negative.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "agent/sampler/collect/mapping_probe.h"

static void tree_is_read_from_6_1_on(void **)
{
	int major_number = 0, minor_number = 0;
	struct utsname name;
	bool has_tree;

	uname(&name);
	assert_int_equal(sscanf(name.release, "%d.%d", &major_number, &minor_number), 2);
	has_tree = major_number > 6 || (major_number == 6 && minor_number >= 1);
	assert_int_equal(mapping_probe(NULL), has_tree ? 0 : -EOPNOTSUPP);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(tree_is_read_from_6_1_on) };

	if (geteuid() != 0) {
		puts("needs root: loading BPF programs");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
