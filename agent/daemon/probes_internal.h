/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shared by probes.c, probe_series.c and probe_states.c. */
#include "agent/daemon/probe_labels.h"
#include "agent/daemon/probes.h"
#include "agent/latency/latency_history.h"
#include "agent/latency/latency_series.h"

/* The probes of one state of the settings file. */
struct probe_entries {
	struct config_probes settings;
	uint64_t groups[CONFIG_PROBES_MAX]; /* of their series */
};

/* What the last window said about a probe. */
struct probe_state {
	char *name, *reason;
	char *logged; /* the reason that was logged last; NULL = none */
	struct window_latency_probe figures; /* but for texts */
	uint64_t hits; /* of all windows so far */
};

struct daemon_probes {
	struct metrics *metrics;
	struct metadata *metadata; /* NULL = nothing is known of containers */
	struct probe_label_rules rules;
	/* BEFORE: those of before the last reload, for as long as windows may have calls of them.
	 */
	struct probe_entries now, before;
	unsigned int windows_before;
	struct latency_series_set series;
	uint64_t idle_ns; /* after which series of ended processes are dropped */
	bool series_refused; /* in the last window */
	struct latency_history *history;
	struct probe_state *states;
	size_t state_count;
	char *problem; /* why the sampler measures none of them; NULL = it does */
};

/* NULL if there is none of this name. */
const struct config_probe *probe_entries_find(
	const struct probe_entries *entries, const char *name, uint64_t *ret_group);

/* probe_series.c */
void probe_series_add(struct daemon_probes *p, const struct sealed_window *window,
	const struct symbolize *symbolize);
int probe_history_add(struct daemon_probes *p, const struct sealed_window *window);
/* Drops series without calls for long whose process has ended, and those of probes that are gone.
 */
void probe_series_expire(struct daemon_probes *p, uint64_t now_ns);

/* probe_states.c */
/*
 * LATENCY NULL: nothing new is known about any probe. Returns -ENOMEM; the states then stay as they
 * were.
 */
int probe_states_take(struct daemon_probes *p, const struct window_latency *latency);
void probe_states_clear(struct daemon_probes *p);
/* Writes the member `probes`: name, state and reason of each. */
void probe_states_write_reasons(const struct daemon_probes *p, struct json *j);
