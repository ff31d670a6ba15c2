/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Probes what this machine supports by trying it. Prints nothing. */

enum check_state {
	CHECK_OK,
	CHECK_DEGRADED, /* the profiler runs, but something is missing from profiles */
	CHECK_MISSING,
};

enum {
	CHECK_TEXT_BYTES = 240,
	CHECK_FEATURES = 21, /* capacity; check_features() returns the count */
};

struct check_feature {
	const char *name;
	enum check_state state;
	char why[CHECK_TEXT_BYTES]; /* what was found */
	char fix[CHECK_TEXT_BYTES]; /* what to do; "" = nothing */
};

/*
 * Fills FEATURES and returns their number. The feature named CHECK_SAMPLER decides whether the
 * profiler can run.
 */
int check_features(struct check_feature features[CHECK_FEATURES]);
extern const char CHECK_SAMPLER[];
