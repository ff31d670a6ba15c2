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
#include "pprof/pprof_ids.h"
#include "pprof/pprof_samples.h"
#include "proto/profile.pb-c.h"

enum {
	PPROF_READ_FILE_BYTES = 64 << 20,
	PPROF_READ_PLAIN_BYTES = 256 << 20, /* after gunzip */
	PPROF_READ_MAX_ENTRIES = 8 << 20, /* of any one table */
};

/* A validated profile: every ID, string number and value count in it is good. */
struct pprof_read {
	Perftools__Profiles__Profile *message;
	struct pprof_ids mappings, locations, functions;
	/* If it was read by pprof_read_at(): */
	struct arena memory; /* of the message */
	struct pprof_samples samples;
};

/*
 * Reads a plain or gzip file. Returns -EBADMSG if it is not a valid profile, with a constant string
 * in *RET_WHY; -E2BIG over a limit; otherwise as io_read_file().
 */
int pprof_read_file(const char *path, struct pprof_read *ret_profile, const char **ret_why);
/*
 * The same for PATH below the directory DIR_FD, for reading many: the message has no samples, which
 * are in `samples`, may not be changed, and is freed as a whole.
 */
int pprof_read_at(
	int dir_fd, const char *path, struct pprof_read *ret_profile, const char **ret_why);
void pprof_read_deinit(struct pprof_read *profile);
/* Returns "" for number 0 and for numbers out of range. */
const char *pprof_read_text(const struct pprof_read *profile, int64_t string);
