/* SPDX-License-Identifier: Apache-2.0 */
#include "base/metrics.h"

const struct metric_text metric_texts[METRIC_COUNT] = {
#define METRIC(id, name_, label_, help_) \
	[METRIC_##id] = { .name = (name_), .label = (label_), .help = (help_) },
#include "base/metrics.def"
#undef METRIC
};
