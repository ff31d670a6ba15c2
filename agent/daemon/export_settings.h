/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The export settings: all remote stores, external labels, relabelling, series. */
#include "agent/daemon/fiber_keys.h"
#include "agent/settings/config.h"
#include "agent/server/export/labels/relabel.h"
#include "agent/settings/remote_settings.h"

enum { EXPORT_STORES_LIMIT = 16, EXPORT_NAME_BYTES = 32 };

/* Texts are borrowed from the config. */
struct export_settings {
	struct remote_settings stores[EXPORT_STORES_LIMIT];
	/* set by the user, else the place name */
	char names[EXPORT_STORES_LIMIT][EXPORT_NAME_BYTES];
	char place_names[EXPORT_STORES_LIMIT][EXPORT_NAME_BYTES]; /* "parca", "parca-2", … */
	size_t store_count;
	struct labels external;
	struct relabel *relabel; /* NULL = no rules */
	char *environment; /* names of variables, each with its NUL, then an empty one */
	uint32_t series_labels; /* bit N: sample_labels[N] is a series label */
	struct fiber_keys fiber_keys; /* and so are these */
	bool debuginfo_upload;
};

/* -EINVAL: *RET_MESSAGE (the caller's to free) says what is wrong. */
int export_settings_read(
	const struct config *config, struct export_settings *ret_settings, char **ret_message);
void export_settings_deinit(struct export_settings *s);
/* A hash that changes when the settings of a remote store or of the spool change. */
uint64_t export_settings_hash(const struct config *config);
