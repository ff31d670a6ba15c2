/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What samples count, as plain data that a window brings along. Each probe has one type of samples;
 * its number is the probe's row (agent/sampler/probes/probes.def). Reports know types by this table
 * only.
 */
#include <stdbool.h>
#include <stdint.h>

enum {
	SAMPLE_TYPES = 16, /* at most */
	SAMPLE_TYPE_TICKS =
		0, /* ticks of the sampling event; the weight is the sum of their periods */
};

/* A value of each sample, as pprof names it. */
struct sample_value {
	const char *type; /* static; NULL = none */
	const char *unit;
};

struct sample_type {
	struct sample_value count; /* of events; without a name no such samples are taken */
	struct sample_value weight;
	bool is_time; /* the weight is in ns */
	uint32_t labels; /* 1 << enum sample_label_number, of those that its samples have */
};

/* The types of a window, by their number; those of probes that do not run are empty. */
struct sample_types {
	struct sample_type of[SAMPLE_TYPES];
};

static inline bool sample_types_have(const struct sample_types *types, uint32_t number)
{
	return number < SAMPLE_TYPES && types->of[number].count.type;
}
