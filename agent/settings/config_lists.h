/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Lists that only the settings file can express: several remote stores, relabelling rules. */
#include "agent/settings/config.h"
#include "agent/server/export/labels/relabel.h"

struct config_lists {
	/* `remote-stores:`: each holds only the remote-store-… settings of its entry. */
	struct config *stores;
	size_t store_count, store_capacity;
	/* `relabel_configs:`, texts owned. */
	struct relabel_rule *rules;
	size_t rule_count, rule_capacity;
};

int config_lists_copy(const struct config_lists *lists, struct config_lists **ret_lists);
void config_lists_destroy(struct config_lists *lists);
/* Append an empty entry, which begins at LINE of the file. -E2BIG: too many. */
int config_add_store(struct config *config, unsigned int line);
int config_add_rule(struct config *config);
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
