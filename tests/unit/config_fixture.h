/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The agent's settings and a settings file to load. Include in one file of a test program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/settings/config_lists.h"
#include "base/io.h"

struct fixture {
	struct config config;
	char path[64];
	char *message; /* of the last load(), NULL = it succeeded */
};

static inline int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	char *argv[] = { (char *)"agent", NULL };
	int fd;

	assert_non_null(f);
	snprintf(f->path, sizeof(f->path), "/tmp/test-config-XXXXXX");
	fd = mkstemp(f->path);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(config_parse(&f->config, IN_AGENT, 1, argv), 0);
	*state = f;
	return 0;
}

static inline int teardown(void **state)
{
	struct fixture *f = *state;

	config_deinit(&f->config);
	free(f->message);
	unlink(f->path);
	free(f);
	return 0;
}

static inline int load_bytes(struct fixture *f, const void *bytes, size_t size)
{
	assert_int_equal(io_replace_file(AT_FDCWD, f->path, bytes, size, 0600), 0);
	free(f->message);
	return config_load(&f->config, f->path, &f->message);
}

static inline int load(struct fixture *f, const char *text)
{
	return load_bytes(f, text, strlen(text));
}

/* The message begins with the file and LINE, and has WORD. */
static inline void load_refused(struct fixture *f, const char *text, int line, const char *word)
{
	char place[80];

	assert_int_equal(load(f, text), -EINVAL);
	assert_non_null(f->message);
	snprintf(place, sizeof(place), "%s:%d: ", f->path, line);
	if (strncmp(f->message, place, strlen(place)) || !strstr(f->message, word))
		fail_msg("\"%s\" does not say %s…%s", f->message, place, word);
}
