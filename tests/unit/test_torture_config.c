/* SPDX-License-Identifier: Apache-2.0 */
/* The settings while each allocation and each system call fails in turn. */
#include "tests/unit/torture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/settings/config.h"
#include "base/cleanup.h"
#include "base/io.h"

static const char text[] = "node: one\n"
			   "local-store-max-bytes: 5000000\n"
			   "relabel_configs:\n"
			   "  - source_labels: [comm]\n"
			   "    regex: shop\n"
			   "    action: keep\n"
			   "remote-stores:\n"
			   "  - address: http://127.0.0.1:1\n"
			   "    name: near\n";

struct fixture {
	char path[64];
	struct config config;
	char *message;
	bool parsed;
};

static int parse(struct fixture *f)
{
	char *argv[] = { (char *)"agent", (char *)"--node", (char *)"given", NULL };
	int err = config_parse(&f->config, IN_AGENT, 3, argv);

	f->parsed = !err;
	return err;
}

static void begin(void *context)
{
	struct fixture *f = context;
	autoclose int fd = -1;

	*f = (struct fixture){ .path = "/tmp/test-config-XXXXXX" };
	fd = mkstemp(f->path);
	assert_true(fd >= 0);
	assert_int_equal(io_write_all(fd, text, strlen(text)), 0);
}

static void end(struct fixture *f)
{
	if (f->parsed)
		config_deinit(&f->config);
	free(f->message);
	unlink(f->path);
}

static int parse_arguments(void *context)
{
	return parse(context);
}

static void arguments_are_known(void *context, int result)
{
	struct fixture *f = context;

	if (!result)
		assert_string_equal(config_text(&f->config, SETTING_node), "given");
	end(f);
}

static void arguments_are_all_taken_or_refused(void **state)
{
	struct fixture f;
	struct torture t = { .begin = begin,
		.operation = parse_arguments,
		.end = arguments_are_known,
		.context = &f };

	(void)state;
	torture_run(&t);
}

static void begin_parsed(void *context)
{
	begin(context);
	assert_int_equal(parse(context), 0);
}

static int load(void *context)
{
	struct fixture *f = context;

	return config_load(&f->config, f->path, &f->message);
}

/* A file that was not read whole changes nothing and can be read again. */
static void all_or_nothing_is_taken(void *context, int result)
{
	struct fixture *f = context;

	if (result) {
		assert_null(f->config.lists);
		assert_int_not_equal(
			config_number(&f->config, SETTING_local_store_max_bytes), 5000000);
		free(take(f->message));
		assert_int_equal(load(f), 0);
	}
	assert_non_null(f->config.lists);
	assert_int_equal(config_number(&f->config, SETTING_local_store_max_bytes), 5000000);
	assert_string_equal(config_text(&f->config, SETTING_node), "given");
	end(f);
}

static void a_file_is_taken_whole_or_not_at_all(void **state)
{
	struct fixture f;
	struct torture t = { .begin = begin_parsed,
		.operation = load,
		.end = all_or_nothing_is_taken,
		.context = &f,
		.optional = "fcntl",
		.other_errors = true }; /* the message says what it was */

	(void)state;
	torture_run(&t);
}

struct copying {
	struct fixture f;
	struct config copy;
};

static void begin_loaded(void *context)
{
	struct copying *c = context;

	memset(c, 0, sizeof(*c));
	begin_parsed(&c->f);
	assert_int_equal(load(&c->f), 0);
}

static int copy(void *context)
{
	struct copying *c = context;

	return config_copy(&c->f.config, &c->copy);
}

static void the_copy_is_whole_or_untouched(void *context, int result)
{
	static const struct config none;
	struct copying *c = context;

	if (result) {
		assert_memory_equal(&c->copy, &none, sizeof(none));
	} else {
		assert_string_equal(config_text(&c->copy, SETTING_node), "given");
		config_deinit(&c->copy);
	}
	end(&c->f);
}

static void a_copy_is_whole_or_untouched(void **state)
{
	struct copying c;
	struct torture t = { .begin = begin_loaded,
		.operation = copy,
		.end = the_copy_is_whole_or_untouched,
		.context = &c };

	(void)state;
	torture_run(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		torture_test(arguments_are_all_taken_or_refused),
		torture_test(a_file_is_taken_whole_or_not_at_all),
		torture_test(a_copy_is_whole_or_untouched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
