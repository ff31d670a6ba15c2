/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/kernel_symbols/kernel_symbols.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cmocka.h>

#include "bpf/abi/kernel_walk.h"
#include "base/host.h"
#include "base/io.h"
#include "tests/unit/fake_proc.h"

static const uint64_t PROGRAM = 0xffffffffc2000000, MODULE = 0xffffffffc0000000;

struct fixture {
	struct fake_proc proc;
	struct metrics metrics;
	struct kernel_symbols *symbols;
};

static void put(struct fixture *f, const char *name, const char *text)
{
	int fd = openat(f->proc.fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(io_write_all(fd, text, strlen(text)), 0);
	close(fd);
}

/* The kernel's own text and one module, whose only function is FUNCTION. */
static void put_kallsyms(struct fixture *f, const char *module, const char *function)
{
	char text[512];

	snprintf(text, sizeof(text),
		"ffffffff81000000 T _stext\nffffffff81000000 T startup\n"
		"ffffffff81000100 t schedule\nffffffff81002000 T _etext\n"
		"ffffffffc0000000 t %s\t[%s]\n",
		function, module);
	put(f, "kallsyms", text);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	if (!f)
		return -1;
	fake_proc_init(&f->proc);
	put_kallsyms(f, "first", "first_work");
	put(f, "modules", "first 16384 0 - Live 0xffffffffc0000000\n");
	*state = f;
	return kernel_symbols_create(f->proc.fd, &f->metrics, &f->symbols);
}

/* The same, after a name was requested. */
static int setup_read(void **state)
{
	struct fixture *f;
	int err = setup(state);

	f = *state;
	return err || !kernel_symbols_table(f->symbols) ? -1 : 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	kernel_symbols_destroy(f->symbols);
	fake_proc_deinit(&f->proc);
	free(f);
	return 0;
}

static int came(struct fixture *f, uint64_t kaddr, const char *name)
{
	return kernel_symbols_change(
		f->symbols, &(struct kallsyms_event){ kaddr, 64, true, name, 1000 }, false);
}

static int went(struct fixture *f, uint64_t kaddr, const char *name, uint64_t time_ns)
{
	return kernel_symbols_change(
		f->symbols, &(struct kallsyms_event){ kaddr, 64, true, name, time_ns }, true);
}

static const char *name_at(const struct fixture *f, uint64_t kaddr)
{
	struct ksymbol symbol;

	return kallsyms_lookup(kernel_symbols_table(f->symbols), kaddr, &symbol) ? symbol.name : "";
}

static void a_removed_program_keeps_its_name_for_the_open_window(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(came(f, PROGRAM, "bpf_prog_a"), 0);
	went(f, PROGRAM, "bpf_prog_a", 1000);
	kernel_symbols_forget(f->symbols, 1000);
	assert_string_equal(name_at(f, PROGRAM + 8), "bpf_prog_a");
	kernel_symbols_forget(f->symbols, 1001);
	assert_string_equal(name_at(f, PROGRAM + 8), "");
}

static void programs_at_one_address_have_their_own_names(void **state)
{
	struct fixture *f = *state;
	struct ksymbol symbol;
	uint32_t first, second;

	came(f, PROGRAM, "bpf_prog_a");
	first = kernel_symbols_tenant(f->symbols, PROGRAM + 8);
	went(f, PROGRAM, "bpf_prog_a", 1000);
	came(f, PROGRAM, "bpf_prog_b");
	second = kernel_symbols_tenant(f->symbols, PROGRAM + 8);
	assert_true(
		kallsyms_lookup_of(kernel_symbols_table(f->symbols), PROGRAM + 8, first, &symbol));
	assert_string_equal(symbol.name, "bpf_prog_a");
	kernel_symbols_forget(f->symbols, 9000);
	assert_false(
		kallsyms_lookup_of(kernel_symbols_table(f->symbols), PROGRAM + 8, first, &symbol));
	assert_true(
		kallsyms_lookup_of(kernel_symbols_table(f->symbols), PROGRAM + 8, second, &symbol));
	assert_string_equal(symbol.name, "bpf_prog_b");
}

/* A new program starts an epoch, so cached frames are resolved again. */
static void each_new_program_starts_an_epoch(void **state)
{
	struct fixture *f = *state;
	uint64_t epoch = kernel_symbols_epoch(f->symbols);

	came(f, PROGRAM, "bpf_prog_a");
	assert_int_not_equal(kernel_symbols_epoch(f->symbols), epoch);
	epoch = kernel_symbols_epoch(f->symbols);
	came(f, PROGRAM, "bpf_prog_b");
	assert_int_not_equal(kernel_symbols_epoch(f->symbols), epoch);
}

/* A node may load a program every second for months. */
static void programs_that_come_and_go_do_not_accumulate(void **state)
{
	struct fixture *f = *state;
	size_t bytes = 0;

	for (uint64_t i = 0; i < 200000; i++) {
		uint64_t kaddr = PROGRAM + i * 128;

		assert_int_equal(came(f, kaddr, "bpf_prog_a"), 0);
		went(f, kaddr, "bpf_prog_a", i + 1);
		if (i == 20000)
			bytes = kallsyms_bytes(kernel_symbols_table(f->symbols));
	}
	assert_int_equal(kallsyms_bytes(kernel_symbols_table(f->symbols)), bytes);
	assert_string_equal(name_at(f, PROGRAM), "");
	assert_string_equal(name_at(f, PROGRAM + 199999 * 128), "bpf_prog_a");
	assert_true(metrics_get(&f->metrics, METRIC_KERNEL_SYMBOLS_REFUSED) > 190000);
}

/* Samples of the open window may belong to either module. */
static void a_module_at_the_address_of_another_gets_its_own_names(void **state)
{
	struct fixture *f = *state;

	assert_string_equal(name_at(f, MODULE), "first_work");
	put_kallsyms(f, "second", "second_work");
	put(f, "modules", "second 16384 0 - Live 0xffffffffc0000000\n");
	assert_true(kernel_symbols_renew(f->symbols, 1000));
	assert_string_equal(name_at(f, MODULE), "");
	kernel_symbols_forget(f->symbols, 1001);
	assert_string_equal(name_at(f, MODULE), "second_work");
	assert_false(kernel_symbols_renew(f->symbols, 2000));
}

/* Before the report of the window in which it was loaded. */
static void a_new_module_has_names_in_the_same_window(void **state)
{
	struct fixture *f = *state;

	put(f, "kallsyms",
		"ffffffff81000000 T _stext\nffffffff81002000 T _etext\n"
		"ffffffffc0000000 t first_work\t[first]\n"
		"ffffffffc1000000 t late_work\t[late]\n");
	put(f, "modules",
		"late 16384 0 - Live 0xffffffffc1000000\n"
		"first 16384 0 - Live 0xffffffffc0000000\n");
	assert_string_equal(name_at(f, 0xffffffffc1000010), "");
	assert_true(kernel_symbols_renew(f->symbols, 1000));
	assert_string_equal(name_at(f, 0xffffffffc1000010), "late_work");
	assert_string_equal(name_at(f, MODULE), "first_work");
}

static void a_removed_module_keeps_its_names_for_the_open_window(void **state)
{
	struct fixture *f = *state;

	came(f, PROGRAM, "bpf_prog_a");
	put(f, "kallsyms", "ffffffff81000000 T _stext\nffffffff81002000 T _etext\n");
	put(f, "modules", "");
	assert_true(kernel_symbols_renew(f->symbols, 1000));
	assert_string_equal(name_at(f, MODULE), "first_work");
	assert_string_equal(name_at(f, PROGRAM), "bpf_prog_a");
	kernel_symbols_forget(f->symbols, 1001);
	assert_string_equal(name_at(f, MODULE), "");
	assert_string_equal(name_at(f, PROGRAM), "bpf_prog_a");
}

/* The same line lists the module's users. */
static void a_new_user_of_a_module_is_not_a_change(void **state)
{
	struct fixture *f = *state;

	put(f, "modules", "first 16384 3 other,another, Live 0xffffffffc0000000\n");
	assert_false(kernel_symbols_renew(f->symbols, 0));
}

static void a_table_that_cannot_be_read_leaves_the_old_one(void **state)
{
	struct fixture *f = *state;

	put(f, "kallsyms", "");
	put(f, "modules", "");
	assert_false(kernel_symbols_renew(f->symbols, 0));
	assert_string_equal(name_at(f, MODULE), "first_work");
}

/* Each table that samples of the open window may need is kept, but only a few of them. */
static void a_table_too_many_is_not_taken(void **state)
{
	struct fixture *f = *state;
	char modules[64];

	for (unsigned int i = 1; i <= 5; i++) {
		snprintf(modules, sizeof(modules), "first 16384 0 - Live 0x%x\n", i);
		put(f, "modules", modules);
		assert_int_equal(kernel_symbols_renew(f->symbols, i), i <= 4);
	}
	assert_int_equal(metrics_get(&f->metrics, METRIC_KERNEL_SYMBOLS_REFUSED), 1);
	/* It is read again once the older ones are forgotten. */
	kernel_symbols_forget(f->symbols, 10);
	assert_true(kernel_symbols_renew(f->symbols, 10));
	assert_false(kernel_symbols_renew(f->symbols, 10));
}

/* A thread reads them, which nobody waits for. */
static void begin(struct fixture *f)
{
	static const useconds_t PAUSE_US = 1000;
	unsigned int pauses = 0;

	while (!kernel_symbols_begin(f->symbols)) {
		assert_true(pauses++ < 60000);
		usleep(PAUSE_US);
	}
}

static void the_first_stack_has_the_symbols_read_once(void **state)
{
	struct fixture *f = *state;

	begin(f);
	assert_true(kernel_symbols_are_read(f->symbols));
	assert_false(kernel_symbols_begin(f->symbols));
}

static void others_wait_for_symbols_that_are_being_read(void **state)
{
	struct fixture *f = *state;

	assert_false(kernel_symbols_are_read(f->symbols));
	(void)kernel_symbols_begin(f->symbols);
	assert_non_null(kernel_symbols_table(f->symbols));
	assert_true(kernel_symbols_are_read(f->symbols));
}

static void symbols_that_are_being_read_may_be_forgotten(void **state)
{
	struct fixture *f = *state;

	(void)kernel_symbols_begin(f->symbols);
	/* The fixture destroys them. */
}

static void nothing_is_read_before_the_first_question(void **state)
{
	struct fixture *f = *state;

	assert_false(kernel_symbols_are_read(f->symbols));
	assert_int_equal(kernel_symbols_bytes(f->symbols), 0);
	put_kallsyms(f, "second", "second_work");
	put(f, "modules", "second 16384 0 - Live 0xffffffffc0000000\n");
	assert_false(kernel_symbols_renew(f->symbols, 0));
	assert_false(kernel_symbols_are_read(f->symbols));
	assert_string_equal(name_at(f, MODULE), "second_work");
	assert_true(kernel_symbols_are_read(f->symbols));
	assert_true(kernel_symbols_bytes(f->symbols) > 0);
	assert_false(kernel_symbols_renew(f->symbols, 0));
}

/* Its record has all that is known of it. */
static void a_program_that_was_gone_before_they_were_read_has_a_name(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(came(f, PROGRAM, "bpf_prog_a"), 0);
	went(f, PROGRAM, "bpf_prog_a", 1000);
	assert_string_equal(name_at(f, PROGRAM + 8), "bpf_prog_a");
	assert_string_equal(name_at(f, MODULE), "first_work");
}

/* Reading takes 0.1 s, in which the rings would not be read. */
static void a_change_does_not_wait_for_the_symbols(void **state)
{
	struct fixture *f = *state;
	struct ksymbol symbol;
	uint32_t first;

	assert_int_equal(came(f, PROGRAM, "bpf_prog_a"), 0);
	first = kernel_symbols_tenant(f->symbols, PROGRAM + 8);
	went(f, PROGRAM, "bpf_prog_a", 1000);
	assert_int_equal(came(f, PROGRAM, "bpf_prog_b"), 0);
	assert_false(kernel_symbols_are_read(f->symbols));
	assert_int_not_equal(kernel_symbols_tenant(f->symbols, PROGRAM + 8), first);
	assert_string_equal(name_at(f, PROGRAM + 8), "bpf_prog_b");
	assert_true(
		kallsyms_lookup_of(kernel_symbols_table(f->symbols), PROGRAM + 8, first, &symbol));
	assert_string_equal(symbol.name, "bpf_prog_a");
}

/* The record claims a page, and where others begin in it is known once they are read. */
static void a_trampoline_ends_where_what_was_there_before_it_begins(void **state)
{
	struct fixture *f = *state;
	const struct kallsyms_event event = { PROGRAM, 4096, true, "bpf_trampoline_1", 1000 };
	const uint64_t other = PROGRAM + 0x200;

	put(f, "kallsyms",
		"ffffffff81000000 T _stext\nffffffff81002000 T _etext\n"
		"ffffffffc2000200 t bpf_prog_before\t[bpf]\n");
	assert_int_equal(kernel_symbols_change(f->symbols, &event, false), 0);
	assert_string_equal(name_at(f, PROGRAM + 8), "bpf_trampoline_1");
	assert_string_equal(name_at(f, other + 8), "bpf_prog_before");
}

#define TEXT_SYMBOLS                    \
	"ffffffff81000000 T _stext\n"   \
	"ffffffff81000010 t schedule\n" \
	"ffffffff81005000 T _etext\n"
#define TABLE_SYMBOLS                                \
	"ffffffff83000000 R __start_orc_unwind_ip\n" \
	"ffffffff83000400 R __stop_orc_unwind_ip\n"  \
	"ffffffff83000402 R __start_orc_unwind\n"

static void address_of_the_kernels_unwind_tables_is_reported(void **state)
{
	struct fixture *f = *state;
	struct abi_kernel_tables tables;

	put(f, "kallsyms", TEXT_SYMBOLS TABLE_SYMBOLS "ffffffff83000a02 R __stop_orc_unwind\n");
	assert_true(kernel_symbols_unwind_tables(f->symbols, &tables));
	assert_int_equal(tables.text, 0xffffffff81000000);
	assert_int_equal(tables.text_end, 0xffffffff81005000);
	assert_int_equal(tables.addresses, 0xffffffff83000000);
	assert_int_equal(tables.rules, 0xffffffff83000402);
	assert_int_equal(tables.index, 0xffffffff83000a04);
	assert_int_equal(tables.count, 256);
}

/* Tables of different lengths do not belong together. */
static void inconsistent_unwind_tables_are_not_reported(void **state)
{
	struct fixture *f = *state;
	struct abi_kernel_tables tables;

	put(f, "kallsyms", TEXT_SYMBOLS TABLE_SYMBOLS "ffffffff83000a08 R __stop_orc_unwind\n");
	assert_false(kernel_symbols_unwind_tables(f->symbols, &tables));
}

static void a_kernel_without_unwind_tables_has_none(void **state)
{
	struct fixture *f = *state;
	struct abi_kernel_tables tables;

	put(f, "kallsyms", TEXT_SYMBOLS);
	assert_false(kernel_symbols_unwind_tables(f->symbols, &tables));
}

static void hidden_symbols_are_tried_once(void **state)
{
	struct fixture *f = *state;

	put(f, "kallsyms", "0000000000000000 T _stext\n");
	assert_null(kernel_symbols_table(f->symbols));
	assert_true(kernel_symbols_are_read(f->symbols));
	put_kallsyms(f, "first", "first_work");
	assert_null(kernel_symbols_table(f->symbols));
	assert_int_equal(came(f, PROGRAM, "bpf_prog_a"), -EACCES);
	went(f, PROGRAM, "bpf_prog_a", 1000);
	assert_false(kernel_symbols_renew(f->symbols, 0));
}

static void a_shortage_of_descriptors_hides_nothing_for_long(void **state)
{
	struct fixture *f = *state;
	struct rlimit whole, none;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &whole), 0);
	none = whole;
	none.rlim_cur = 3;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_null(kernel_symbols_table(f->symbols));
	assert_false(kernel_symbols_are_read(f->symbols));
	assert_false(kernel_symbols_begin(f->symbols));
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &whole), 0);
	begin(f);
	assert_non_null(kernel_symbols_table(f->symbols));
	assert_string_equal(name_at(f, MODULE), "first_work");
}

/* A host whose clock stands still and whose kallsyms cannot be opened while ERROR is set. */
struct broken_host {
	struct host host;
	uint64_t now_ns;
	int error;
};

static uint64_t broken_clock_ns(void *context, clockid_t clock)
{
	const struct broken_host *h = context;

	(void)clock;
	return h->now_ns;
}

static int broken_openat(void *context, int dir_fd, const char *path, int flags)
{
	const struct broken_host *h = context;

	if (h->error && !strcmp(path, "kallsyms")) {
		errno = h->error;
		return -1;
	}
	return openat(dir_fd, path, flags);
}

/* Returns how often MESSAGE is in FILE. */
static unsigned int count_in(FILE *file, const char *message)
{
	unsigned int found = 0;
	char line[512];

	rewind(file);
	while (fgets(line, sizeof(line), file))
		found += strstr(line, message) != NULL;
	return found;
}

static void a_long_shortage_is_logged_once(void **state)
{
	struct fixture *f = *state;
	struct broken_host h = { .now_ns = 1000, .error = EIO };
	FILE *file = tmpfile();
	int before = dup(STDERR_FILENO);

	assert_non_null(file);
	h.host = (struct host){
		.context = &h, .clock_ns = broken_clock_ns, .openat = broken_openat
	};
	host_current = &h.host;
	dup2(fileno(file), STDERR_FILENO);
	for (unsigned int i = 0; i < 3; i++) {
		(void)kernel_symbols_table(f->symbols);
		h.now_ns += UINT64_C(1000000000);
	}
	dup2(before, STDERR_FILENO);
	close(before);
	host_current = NULL;
	assert_int_equal(count_in(file, "cannot be read now, trying again"), 1);
	fclose(file);
}

static void an_input_error_hides_nothing_for_long(void **state)
{
	struct fixture *f = *state;
	struct broken_host h = { .now_ns = 1000, .error = EIO };

	h.host = (struct host){
		.context = &h, .clock_ns = broken_clock_ns, .openat = broken_openat
	};
	host_current = &h.host;
	assert_null(kernel_symbols_table(f->symbols));
	assert_false(kernel_symbols_are_read(f->symbols));
	h.error = 0;
	/* Reading megabytes until the error costs too much to repeat it at once. */
	assert_null(kernel_symbols_table(f->symbols));
	h.now_ns += UINT64_C(1000000000);
	assert_non_null(kernel_symbols_table(f->symbols));
	host_current = NULL;
	assert_string_equal(name_at(f, MODULE), "first_work");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup_read, teardown)
#define CASE_UNREAD(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_removed_program_keeps_its_name_for_the_open_window),
		CASE(programs_at_one_address_have_their_own_names),
		CASE(each_new_program_starts_an_epoch),
		CASE(programs_that_come_and_go_do_not_accumulate),
		CASE(a_module_at_the_address_of_another_gets_its_own_names),
		CASE(a_new_module_has_names_in_the_same_window),
		CASE(a_removed_module_keeps_its_names_for_the_open_window),
		CASE(a_new_user_of_a_module_is_not_a_change),
		CASE(a_table_that_cannot_be_read_leaves_the_old_one),
		CASE(a_table_too_many_is_not_taken),
		CASE_UNREAD(the_first_stack_has_the_symbols_read_once),
		CASE_UNREAD(others_wait_for_symbols_that_are_being_read),
		CASE_UNREAD(symbols_that_are_being_read_may_be_forgotten),
		CASE_UNREAD(nothing_is_read_before_the_first_question),
		CASE_UNREAD(a_program_that_was_gone_before_they_were_read_has_a_name),
		CASE_UNREAD(a_change_does_not_wait_for_the_symbols),
		CASE_UNREAD(a_trampoline_ends_where_what_was_there_before_it_begins),
		CASE_UNREAD(address_of_the_kernels_unwind_tables_is_reported),
		CASE_UNREAD(inconsistent_unwind_tables_are_not_reported),
		CASE_UNREAD(a_kernel_without_unwind_tables_has_none),
		CASE_UNREAD(hidden_symbols_are_tried_once),
		CASE_UNREAD(a_shortage_of_descriptors_hides_nothing_for_long),
		CASE_UNREAD(an_input_error_hides_nothing_for_long),
		CASE_UNREAD(a_long_shortage_is_logged_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
