/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The parts of `fathom upload`: reading foreign pprof files and splitting them into payloads. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/server/export/payload.h"
#include "base/map.h"
#include "proto/profile.pb-c.h"

/* ---- upload_profile.c ---------------------------------------------------------------------- */
enum {
	UPLOAD_FILE_BYTES = 64 << 20,
	UPLOAD_PLAIN_BYTES = 256 << 20, /* after gunzip */
	UPLOAD_MAX_ENTRIES = 8 << 20, /* of any one table */
};

/* A validated profile: every ID, string number and value count in it is good. */
struct upload_profile {
	Perftools__Profiles__Profile *message;
	struct map mappings, locations, functions; /* id → index */
};

/*
 * Reads a plain or gzip file. Returns -EBADMSG if it is not a valid profile, with a constant string
 * in *RET_WHY; -E2BIG over a limit; otherwise as io_read_file().
 */
int upload_profile_read(const char *path, struct upload_profile *ret_profile, const char **ret_why);
void upload_profile_deinit(struct upload_profile *profile);
/* Returns "" for number 0 and for numbers out of range. */
const char *upload_text(const struct upload_profile *profile, int64_t string);

/* ---- upload_payloads.c --------------------------------------------------------------------- */
struct upload_series {
	const struct labels *external;
	const char *service; /* used if neither labels nor samples name one */
	int64_t time_ns; /* used if the profile has none */
	bool sample_labels; /* keep sample labels: Pyroscope would make series of them */
};

/* A negative return value stops the iteration and is returned. */
typedef int upload_payload_fn(void *context, const struct payload *payload);

/*
 * Passes PROFILE to EACH as payloads for agent/server/export: one series for each value of the
 * string label `comm` (if the external labels have no service_name), split into pieces that servers
 * accept in one request.
 */
int upload_payloads(const struct upload_profile *profile, const struct upload_series *series,
	upload_payload_fn *each, void *context);
