/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the machine allows, found out by trying it; no printing. */

enum check_state {
	CHECK_OK,
	CHECK_DEGRADED, /* the profiler runs, but something is missing from profiles */
	CHECK_MISSING,
};

enum {
	CHECK_TEXT_BYTES = 240,
	CHECK_FEATURES = 16, /* room for; check_features() says how many there are */
};

struct check_feature {
	const char *name;
	enum check_state state;
	char why[CHECK_TEXT_BYTES]; /* what was found */
	char fix[CHECK_TEXT_BYTES]; /* what to do, "" where nothing need be done */
};

/* Fills FEATURES and returns how many. The one named CHECK_SAMPLER decides whether it runs. */
int check_features(struct check_feature features[CHECK_FEATURES]);
extern const char CHECK_SAMPLER[];
