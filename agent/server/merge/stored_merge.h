/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Many stored profiles as one. Either the sums of equal samples, as `go tool pprof` would make
 * them; or, `by_file`, with the samples of each file apart, so that whoever has the merge has the
 * files: each sample then has the label `fathom_file` with the number of its file, and comments
 * tell what the files are, in order of their numbers from 1 on:
 *
 *     file PERIOD TYPE PATH  the period and the main type of its samples, its path in the store
 *     comment TEXT           of the file before
 *     unread PATH            it has no number: it is no valid profile, or larger than any of ours
 *
 * Files may have different sample types; a sample has 0 of those that its file lacks.
 */
#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "pprof/pprof_read.h"

struct stored_merge;

struct stored_merge_options {
	/* Whose samples; NULL or "" = everybody's. */
	const char *comm; /* value of the label `comm` */
	const char
		*container; /* value of the label `container_id`, or its first 12 digits or more */
	bool by_file;
	size_t limit_bytes; /* of memory, and of the encoded message; 0 = 64 MiB */
};

/* OPTIONS's texts are borrowed. */
int stored_merge_create(
	const struct stored_merge_options *options, struct stored_merge **ret_merge);
void stored_merge_destroy(struct stored_merge *m);
/*
 * Adds the selected samples of PROFILE. One with stacks or labels beyond the limits of pprof.h is
 * unread. After an error (-E2BIG: over the limit, -ENOMEM) the merge
 * is incomplete and may only be destroyed.
 */
int stored_merge_add(struct stored_merge *m, const char *path, const struct pprof_read *profile);
/* The profile at PATH cannot be read. */
int stored_merge_unread(struct stored_merge *m, const char *path);
/* Appends the profile, compressed. The same calls give the same bytes. */
int stored_merge_encode(struct stored_merge *m, struct buffer *out);
