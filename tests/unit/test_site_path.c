/* SPDX-License-Identifier: Apache-2.0 */
/* Cookies in the paths of files, for kernels without cookies. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/sampler/probes/latency/site_path.h"
#include "base/cleanup.h"
#include "bpf/abi/latency.h"

static const uint64_t cookies[] = { 0, 1, 2, ABI_LATENCY_FUNCTIONS - 1, 0x55555555, UINT32_MAX,
	ABI_LATENCY_RETURN, ABI_LATENCY_RETURN | 0xaaaaaaaa,
	(UINT64_C(1) << ABI_SITE_PATH_BITS) - 1 };

static void cookies_are_read_back(void **state)
{
	char path[SITE_PATH_PLAIN_BYTES + ABI_SITE_PATH_CHARACTERS];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cookies); i++) {
		site_path_write("/proc/self/fd/17", cookies[i], path);
		assert_int_equal(abi_site_path_cookie(path + ABI_SITE_PATH_PREFIX), cookies[i]);
	}
}

static void the_path_names_the_same_file(void **state)
{
	autoclose int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	char plain[SITE_PATH_PLAIN_BYTES];
	char path[SITE_PATH_PLAIN_BYTES + ABI_SITE_PATH_CHARACTERS];
	struct stat own, named;

	(void)state;
	assert_int_equal(fstat(file, &own), 0);
	snprintf(plain, sizeof(plain), "/proc/self/fd/%d", file);
	for (size_t i = 0; i < ARRAY_SIZE(cookies); i++) {
		site_path_write(plain, cookies[i], path);
		assert_int_equal(stat(path, &named), 0);
		assert_int_equal(named.st_ino, own.st_ino);
		assert_int_equal(named.st_dev, own.st_dev);
	}
}

static void the_longest_descriptor_fits(void **state)
{
	char path[SITE_PATH_PLAIN_BYTES + ABI_SITE_PATH_CHARACTERS];

	(void)state;
	site_path_write("/proc/self/fd/2147483647", 0, path);
	assert_string_equal(path + ABI_SITE_PATH_PREFIX + ABI_SITE_PATH_CHARACTERS, "/2147483647");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cookies_are_read_back),
		cmocka_unit_test(the_path_names_the_same_file),
		cmocka_unit_test(the_longest_descriptor_fits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
