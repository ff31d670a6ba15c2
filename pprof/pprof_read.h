/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Reads pprof files, which may be anybody's: a profile that was read has no ID, string number or
 * value count that leads nowhere. Bounds what a file may unpack to.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/map.h"
#include "pprof/pprof_samples.h"
#include "proto/profile.pb-c.h"

enum {
	PPROF_READ_FILE_BYTES = 64 << 20,
	PPROF_READ_PLAIN_BYTES = 256 << 20, /* after gunzip */
	PPROF_READ_MAX_ENTRIES = 8 << 20, /* of any one table */
};

/* id → index. Most tools number from 1 on, without gaps. */
struct pprof_ids {
	size_t counted; /* the first so many IDs are 1, 2, 3, … */
	struct map others;
};

static inline bool pprof_ids_get(const struct pprof_ids *ids, uint64_t id, uint64_t *ret_index)
{
	if (id - 1 >= ids->counted)
		return map_get(&ids->others, id, ret_index);
	*ret_index = id - 1;
	return true;
}

/* A validated profile: every ID, string number and value count in it is good. */
struct pprof_read {
	Perftools__Profiles__Profile *message;
	struct pprof_ids mappings, locations, functions;
	/* If it was read by pprof_read_at(), which leaves the samples as they are: */
	struct arena memory; /* of the message */
	struct buffer plain; /* for pprof_samples_begin() */
	size_t most_locations, most_labels; /* of a sample */
};

/*
 * Reads a plain or gzip file. Returns -EBADMSG if it is not a valid profile, with a constant string
 * in *RET_WHY; -E2BIG over a limit; otherwise as io_read_file().
 */
int pprof_read_file(const char *path, struct pprof_read *ret_profile, const char **ret_why);
/*
 * The same for PATH below the directory DIR_FD, for reading many: the message has no samples
 * (pprof_read_samples()), may not be changed, and is freed as a whole.
 */
int pprof_read_at(
	int dir_fd, const char *path, struct pprof_read *ret_profile, const char **ret_why);
/* Of a profile that was read by pprof_read_at(): all of them are good. */
void pprof_read_samples(const struct pprof_read *profile, struct pprof_samples *ret_samples);
void pprof_read_deinit(struct pprof_read *profile);
/* Returns "" for number 0 and for numbers out of range. */
const char *pprof_read_text(const struct pprof_read *profile, int64_t string);
