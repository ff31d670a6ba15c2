/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Prometheus relabelling. A rule's source labels, joined by its separator, are matched against its
 * regular expression (anchored on both ends; syntax as in labels/pattern.h).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/server/export/payload.h"

enum relabel_action {
	RELABEL_REPLACE,
	RELABEL_KEEP,
	RELABEL_DROP,
	RELABEL_LABELMAP,
	RELABEL_LABELDROP,
	RELABEL_LABELKEEP,
	RELABEL_HASHMOD,
	RELABEL_LOWERCASE,
	RELABEL_UPPERCASE,
	RELABEL_KEEPEQUAL,
	RELABEL_DROPEQUAL,
};

/* Texts as in the file; NULL = Prometheus' documented default. */
struct relabel_rule {
	enum relabel_action action;
	const char *const *source_labels;
	size_t source_label_count;
	const char *separator, *regex, *target_label, *replacement;
	uint64_t modulus;
};

struct relabel;

int relabel_create(const struct relabel_rule *rules, size_t count, struct relabel **ret_relabel,
	char **ret_message);
void relabel_destroy(struct relabel *r);
/*
 * Applies all rules to LABELS in order. *RET_KEEP is false if the target is dropped. Labels that
 * begin with `__` (other than `__name__`) are kept: the caller removes them.
 */
int relabel_apply(const struct relabel *r, struct labels *labels, bool *ret_keep);
