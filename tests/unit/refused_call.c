/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/refused_call.h"

#include <errno.h>
#include <pthread.h>
#include <seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

struct refusing_thread {
	const struct refused_call *call;
	int (*fn)(void *context);
	void *context;
	int filter_error, answer;
};

static int refuse(const struct refused_call *call)
{
	const struct scmp_arg_cmp first = SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)call->first);
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	int err;

	if (!filter)
		return -ENOMEM;
	err = seccomp_rule_add_array(filter, SCMP_ACT_ERRNO((uint32_t)call->error), call->number,
		call->first ? 1 : 0, &first);
	if (!err)
		err = seccomp_load(filter); /* for this thread alone */
	seccomp_release(filter);
	return err;
}

static void *run_refusing(void *argument)
{
	struct refusing_thread *t = argument;

	t->filter_error = refuse(t->call);
	if (!t->filter_error)
		t->answer = t->fn(t->context);
	return NULL;
}

int with_refused_call(const struct refused_call *call, int (*fn)(void *context), void *context)
{
	struct refusing_thread t = { .call = call, .fn = fn, .context = context };
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, run_refusing, &t), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(t.filter_error, 0);
	return t.answer;
}
