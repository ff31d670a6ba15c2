/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Lists that only the settings file can express: remote stores, relabelling rules, probes. */
#include "agent/settings/config.h"
#include "agent/settings/config_probes.h"
#include "agent/server/export/labels/relabel.h"

struct config_lists {
	/* `remote-stores:`: each holds only the remote-store-… settings of its entry. */
	struct config *stores;
	size_t store_count, store_capacity;
	/* `relabel_configs:`, texts owned. */
	struct relabel_rule *rules;
	size_t rule_count, rule_capacity;
	struct config_probes probes; /* `probes:` */
};

int config_lists_copy(const struct config_lists *lists, struct config_lists **ret_lists);
void config_lists_destroy(struct config_lists *lists);
/* Append an empty entry, which begins at LINE of the file. -E2BIG: too many. */
int config_add_store(struct config *config, unsigned int line);
int config_add_rule(struct config *config);
int config_add_probe(struct config *config, unsigned int line);
/*
 * These act on the last entry, by the name in the file. -ENOENT: unknown name; -EINVAL: invalid
 * value. The add functions append one item to a list.
 */
enum config_kind config_store_kind(const struct config *config, const char *name);
int config_store_set(struct config *config, const char *name, const char *text, unsigned int line);
int config_store_add(struct config *config, const char *name, const char *item, unsigned int line);
enum config_kind config_rule_kind(const struct config *config, const char *name);
int config_rule_set(struct config *config, const char *name, const char *text, unsigned int line);
int config_rule_add(struct config *config, const char *name, const char *item, unsigned int line);
/* Of a probe, and of the names in its `labels`. -EINVAL: `probes.problem` has the reason. */
enum config_kind config_probe_kind(const struct config *config, const char *name);
int config_probe_set(struct config *config, const char *name, const char *text, unsigned int line);
int config_probe_add(struct config *config, const char *name, const char *item, unsigned int line);
enum config_kind config_label_kind(const struct config *config, const char *name);
int config_label_set(struct config *config, const char *name, const char *text, unsigned int line);
