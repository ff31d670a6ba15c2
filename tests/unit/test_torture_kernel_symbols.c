/* SPDX-License-Identifier: Apache-2.0 */
/* agent/sampler/kernel_symbols while each allocation and each system call fails in turn. */
#include "tests/unit/torture.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/sampler/kernel_symbols/kernel_symbols.h"
#include "base/io.h"
#include "tests/unit/fake_proc.h"

static const uint64_t MODULE = 0xffffffffc0000000, PROGRAM = 0xffffffffc2000000;

static uint64_t now_s;

/* In the place of libc's: the clock stands still unless the test advances it. */
int clock_gettime(clockid_t clock, struct timespec *ret_time)
{
	(void)clock;
	*ret_time = (struct timespec){ .tv_sec = (time_t)now_s };
	return 0;
}

struct tortured {
	struct fake_proc proc;
	struct metrics metrics;
	struct kernel_symbols *symbols;
	bool renewed;
};

static void put(struct tortured *t, const char *name, const char *text)
{
	int fd = openat(t->proc.fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(io_write_all(fd, text, strlen(text)), 0);
	close(fd);
}

static void begin(void *context)
{
	struct tortured *t = context;

	*t = (struct tortured){ 0 };
	now_s = 1000;
	fake_proc_init(&t->proc);
	put(t, "kallsyms",
		"ffffffff81000000 T _stext\nffffffff81002000 T _etext\n"
		"ffffffffc0000000 t first_work\t[first]\n");
	put(t, "modules", "first 16384 0 - Live 0xffffffffc0000000\n");
	assert_int_equal(kernel_symbols_create(t->proc.fd, &t->metrics, &t->symbols), 0);
}

static void end(struct tortured *t)
{
	kernel_symbols_destroy(t->symbols);
	fake_proc_deinit(&t->proc);
}

static const char *name_at(const struct tortured *t, uint64_t kaddr)
{
	const struct kallsyms *table = kernel_symbols_table(t->symbols);
	struct ksymbol symbol;

	return table && kallsyms_lookup(table, kaddr, &symbol) ? symbol.name : "";
}

static int create_symbols(void *context)
{
	struct tortured *t = context;
	struct kernel_symbols *symbols = NULL;
	int err = kernel_symbols_create(t->proc.fd, &t->metrics, &symbols);

	assert_int_equal(symbols != NULL, err == 0);
	kernel_symbols_destroy(symbols);
	return err;
}

static void end_of_create(void *context, int result)
{
	(void)result;
	end(context);
}

static void symbols_are_created_whole_or_not_at_all(void **state)
{
	struct tortured t;

	(void)state;
	torture_run(&(struct torture){
		.begin = begin, .operation = create_symbols, .end = end_of_create, .context = &t });
}

static int read_table(void *context)
{
	struct tortured *t = context;

	return kernel_symbols_table(t->symbols) ? 0 : -EAGAIN;
}

/* A shortage hides no names for good, and no table was made as if there were no modules. */
static void the_names_come_at_once_or_later(void *context, int result)
{
	struct tortured *t = context;

	assert_int_equal(kernel_symbols_are_read(t->symbols), result == 0);
	if (!result)
		assert_false(kernel_symbols_renew(t->symbols, 500));
	now_s += 2;
	assert_string_equal(name_at(t, MODULE), "first_work");
	end(t);
}

static void a_table_that_cannot_be_read_is_read_later(void **state)
{
	struct tortured t;

	(void)state;
	/* The table is complete without the list of modules, and if it cannot be shrunk. */
	torture_run(&(struct torture){ .begin = begin,
		.operation = read_table,
		.end = the_names_come_at_once_or_later,
		.context = &t,
		.optional = "*" });
}

static void begin_renewal(void *context)
{
	struct tortured *t = context;

	begin(context);
	assert_string_equal(name_at(t, MODULE), "first_work");
	put(t, "kallsyms",
		"ffffffff81000000 T _stext\nffffffff81002000 T _etext\n"
		"ffffffffc0000000 t second_work\t[second]\n");
	put(t, "modules", "second 16384 0 - Live 0xffffffffc0000000\n");
}

static int renew(void *context)
{
	struct tortured *t = context;

	t->renewed = kernel_symbols_renew(t->symbols, 1000);
	return 0;
}

/* The old table stays until a new one is complete, which a later attempt finds. */
static void the_table_is_renewed_at_once_or_later(void *context, int result)
{
	struct tortured *t = context;

	assert_int_equal(result, 0);
	if (!torture_failed())
		assert_true(t->renewed);
	if (!t->renewed)
		assert_string_equal(name_at(t, MODULE), "first_work");
	/* A list of modules that could not be read is read once more. */
	assert_true(kernel_symbols_renew(t->symbols, 2000) || t->renewed);
	assert_false(kernel_symbols_renew(t->symbols, 2000));
	kernel_symbols_forget(t->symbols, 3000);
	assert_string_equal(name_at(t, MODULE), "second_work");
	end(t);
}

static void a_renewal_that_fails_is_tried_again(void **state)
{
	struct tortured t;

	(void)state;
	torture_run(&(struct torture){ .begin = begin_renewal,
		.operation = renew,
		.end = the_table_is_renewed_at_once_or_later,
		.context = &t,
		.optional = "*" });
}

static void begin_change(void *context)
{
	struct tortured *t = context;

	begin(context);
	assert_non_null(kernel_symbols_table(t->symbols));
}

static int add_program(void *context)
{
	struct tortured *t = context;

	return kernel_symbols_change(t->symbols,
		&(struct kallsyms_event){ PROGRAM, 64, true, "bpf_prog_a", 1000 }, false);
}

static void the_program_has_its_name_or_is_counted(void *context, int result)
{
	struct tortured *t = context;

	assert_int_equal(metrics_get(&t->metrics, METRIC_KERNEL_SYMBOLS_REFUSED), result != 0);
	assert_string_equal(name_at(t, PROGRAM + 8), result ? "" : "bpf_prog_a");
	end(t);
}

static void a_program_without_memory_is_counted(void **state)
{
	struct tortured t;

	(void)state;
	torture_run(&(struct torture){ .begin = begin_change,
		.operation = add_program,
		.end = the_program_has_its_name_or_is_counted,
		.context = &t });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		torture_test(symbols_are_created_whole_or_not_at_all),
		torture_test(a_table_that_cannot_be_read_is_read_later),
		torture_test(a_renewal_that_fails_is_tried_again),
		torture_test(a_program_without_memory_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
