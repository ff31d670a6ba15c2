/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The labels of histograms on /metrics: function, binary, probe, those of the process after
 * relabelling, those that the probe's settings name, and what the probe tells calls apart by. No
 * two of them have the same name. Those of this machine (node, metadata-external-labels) are for
 * rules to read; they are left out, as whoever collects metrics adds its own.
 */
#include <stdbool.h>

#include "agent/sampler/seam/symbolized.h"
#include "agent/sampler/seam/window_latency.h"
#include "agent/sampler/seam/window_processes.h"
#include "agent/server/export/labels/relabel.h"
#include "agent/server/metadata/metadata.h"
#include "agent/settings/config_probes.h"
#include "base/buffer.h"

struct probe_label_rules {
	char *node;
	struct labels external;
	struct relabel *relabel; /* NULL = none */
	char *environment; /* as for process_labels_meta() */
	const struct metadata_view
		*containers; /* borrowed; NULL = nothing is known of containers */
};

/* -EINVAL: *RET_MESSAGE (the caller's to free) says what is wrong. */
int probe_label_rules_read(
	const struct config *config, struct probe_label_rules *ret_rules, char **ret_message);
void probe_label_rules_deinit(struct probe_label_rules *rules);

/*
 * The labels of a process, for any of its functions. FACTS NULL: it is not known, and has none.
 * *RET_KEEP is false if a rule drops it. LABELS is all zero.
 */
int probe_labels_of_process(const struct probe_label_rules *rules,
	const struct process_facts *facts, const struct symbolize *symbolize, struct labels *labels,
	bool *ret_keep);

struct probe_labels_parts {
	const struct config_probe *probe;
	const struct window_latency_function *function;
	const struct labels *process;
	const struct process_facts *facts; /* NULL = not known */
	enum abi_latency_by by;
	uint64_t key; /* goid or cgroup id */
};
/* Appends the labels of a histogram as text, with commas between. Returns OUT's error. */
int probe_labels_write(const struct probe_labels_parts *parts, struct buffer *out);
