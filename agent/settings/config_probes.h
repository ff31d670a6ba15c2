/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * `probes:` of the settings file: functions of which processes the agent measures, and the labels
 * of their histograms. Values are checked when they are read, so that a message has their line.
 */
#include <stdbool.h>
#include <stddef.h>

#include "agent/settings/config.h"
#include "bpf/abi/latency.h"

enum {
	CONFIG_PROBES_MAX = 64,
	CONFIG_PROBE_NAME_BYTES = 64, /* the longest name */
	CONFIG_PROBE_LABELS_MAX = 16,
};

struct config_texts {
	char **items;
	size_t count, capacity;
};

struct config_probe {
	char *name; /* unique; clean UTF-8 */
	unsigned int line; /* of the file, where it begins */
	struct config_texts processes; /* selectors, as --include has them; empty = all */
	struct config_texts functions, unwanted; /* [BIN:]GLOB, or of the kernel GLOB */
	bool exclude_vendor, kernel;
	enum abi_latency_by by;
	/* Label names, and at the same place their values. */
	struct config_texts label_names, label_values;
};

struct config_probes {
	struct config_probe *items;
	size_t count, capacity;
	char problem[200]; /* why the last value was refused: what follows its key in a message */
};

int config_probes_copy(const struct config_probes *probes, struct config_probes *ret_probes);
void config_probes_deinit(struct config_probes *probes);
/* Appends an empty probe, which begins at LINE of the file. Returns -E2BIG or -ENOMEM. */
int config_probes_add(struct config_probes *probes, unsigned int line);

/*
 * These act on the last probe, by the name in the file. -ENOENT: unknown name; -EINVAL: invalid
 * value, with the reason in `problem`.
 */
enum config_kind config_probes_kind(const char *key);
int config_probes_set(struct config_probes *probes, const char *key, const char *text);
int config_probes_add_item(struct config_probes *probes, const char *key, const char *item);
int config_probes_set_label(struct config_probes *probes, const char *name, const char *value);
/* Whether the last probe is complete and agrees with the others. -EINVAL: see `problem`. */
int config_probes_check(struct config_probes *probes);

/* Whether A and B measure the same and name it the same. */
bool config_probe_is_same(const struct config_probe *a, const struct config_probe *b);
