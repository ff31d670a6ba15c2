/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Writes records (format.h) into a recording, each with the time of the sampler's clock. A file
 * that cannot be written is logged once; nobody has to check.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "agent/sampler/recording/format.h"

enum { WRITER_MAX_PARTS = 4 };

struct writer_part {
	const void *bytes;
	size_t size;
};

/* A record's body: its parts one after the other, those that are not set are empty. */
struct writer_body {
	struct writer_part parts[WRITER_MAX_PARTS];
};

struct writer {
	FILE *out;
	uint64_t now_ns; /* CLOCK_MONOTONIC as the sampler sees it */
	bool failed; /* which was logged */
};

/* Overwrites PATH. Returns a negative errno. */
int writer_init(struct writer *w, const char *path);
/* BODY may be NULL: the record has none. */
void writer_put(struct writer *w, enum recording_type type, const struct writer_body *body);
/* TEXT with its NUL. */
struct writer_part writer_text(const char *text);
