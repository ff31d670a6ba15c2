/* SPDX-License-Identifier: Apache-2.0 */
/* CAP_SYS_ADMIN in the effective set, which is this thread's own. Without the capability: skipped.
 */
#include "agent/sampler/collect/admin.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

static const uint32_t ADMIN = UINT32_C(1) << CAP_SYS_ADMIN;

struct sets {
	struct __user_cap_data_struct parts[_LINUX_CAPABILITY_U32S_3];
};

static struct sets own_sets(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct sets sets;

	assert_int_equal(syscall(SYS_capget, &header, sets.parts), 0);
	return sets;
}

static void set_sets(const struct sets *sets)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };

	assert_int_equal(syscall(SYS_capset, &header, sets->parts), 0);
}

static bool is_up(void)
{
	return own_sets().parts[0].effective & ADMIN;
}

/* The finer capabilities came with Linux 5.9. */
static bool can_lay_down(void)
{
	return own_sets().parts[0].permitted & own_sets().parts[0].effective & ADMIN &&
	       prctl(PR_CAPBSET_READ, CAP_CHECKPOINT_RESTORE, 0, 0, 0) >= 0;
}

static void it_is_laid_down_and_taken_up(void **state)
{
	(void)state;
	if (!can_lay_down())
		skip();
	admin_lay_down();
	assert_false(is_up());
	assert_true(own_sets().parts[0].permitted & ADMIN);
	assert_true(admin_take_up());
	assert_true(is_up());
}

static void what_is_so_already_stays_so(void **state)
{
	(void)state;
	if (!can_lay_down())
		skip();
	assert_false(admin_take_up());
	assert_true(is_up());
	admin_lay_down();
	admin_lay_down();
	assert_false(is_up());
	assert_true(admin_take_up());
}

/* The last case, as what is given up does not come back. */
static void what_is_not_permitted_is_not_taken_up(void **state)
{
	struct sets sets = own_sets();

	(void)state;
	sets.parts[0].permitted &= ~ADMIN;
	sets.parts[0].effective &= ~ADMIN;
	sets.parts[0].inheritable &= ~ADMIN;
	set_sets(&sets);
	assert_false(admin_take_up());
	assert_false(is_up());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_laid_down_and_taken_up),
		cmocka_unit_test(what_is_so_already_stays_so),
		cmocka_unit_test(what_is_not_permitted_is_not_taken_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
