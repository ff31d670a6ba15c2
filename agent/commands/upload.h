/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The parts of `fathom upload`: reading a pprof of somebody else's, making payloads of it. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/server/export/payload.h"
#include "base/map.h"
#include "proto/profile.pb-c.h"

/* ---- upload_profile.c ---------------------------------------------------------------------- */
enum {
	UPLOAD_FILE_BYTES = 64 << 20,
	UPLOAD_PLAIN_BYTES = 256 << 20, /* without gzip */
	UPLOAD_MAX_ENTRIES = 8 << 20, /* of any of its tables */
};

/* A profile whose references have been checked: each id, string and value is there. */
struct upload_profile {
	Perftools__Profiles__Profile *message;
	struct map mappings, locations, functions; /* id → index */
};

/*
 * Plain or gzip. -EBADMSG: no profile, *RET_WHY (a constant) says what is wrong with it; -E2BIG,
 * else as io_read_file().
 */
int upload_profile_read(const char *path, struct upload_profile *ret_profile, const char **ret_why);
void upload_profile_deinit(struct upload_profile *profile);
/* "" for number 0. */
const char *upload_text(const struct upload_profile *profile, int64_t string);

/* ---- upload_payloads.c --------------------------------------------------------------------- */
struct upload_series {
	const struct labels *external;
	const char *service; /* where neither labels nor samples say */
	int64_t time_ns; /* where the profile does not say */
	bool sample_labels; /* they stay: Pyroscope would make series of them */
};

/* A negative return ends it and is passed on. */
typedef int upload_payload_fn(void *context, const struct payload *payload);

/*
 * Hands PROFILE out in payloads as agent/server/export wants them: one series for each value of the
 * string label `comm` (where the external labels have no service_name), each cut into pieces that
 * servers take at once.
 */
int upload_payloads(const struct upload_profile *profile, const struct upload_series *series,
	upload_payload_fn *each, void *context);
