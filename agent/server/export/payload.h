/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The unit that is sent: one pprof of one series and one window. Labels are the series' (Prometheus
 * names), sorted by name, each name once, UTF-8; they include `__name__` and `service_name`. The
 * pprof is gzip-compressed and obeys what the servers demand: ids 1..N in order, period type and
 * period present, valid UTF-8, sample types samples/count and cpu/nanoseconds. Its samples have
 * all of their labels only if all stores are OTLP or files: Pyroscope would make series of them,
 * but for `span_id`, which they have if it is among the stores. If OTLP is among the stores,
 * comments identify the files of its mappings (base/file_hash.h).
 */
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

enum {
	LABELS_LIMIT = 128, /* of a set, also before relabelling */
	SERIES_LABELS_LIMIT = 30, /* of a payload: Pyroscope's limit */
	LABEL_NAME_BYTES = 1024,
	LABEL_VALUE_BYTES = 2048,
};

struct label {
	char *name;
	char *value;
};

/* Owns its texts. All zero is a valid empty set. */
struct labels {
	struct label items[LABELS_LIMIT];
	size_t count;
};

struct payload {
	struct labels labels;
	struct buffer pprof; /* gzip */
	uint64_t raw_bytes; /* before compression */
	uint64_t samples; /* entries in the sample table */
	int64_t time_ns; /* start of the window, since 1970 */
	int64_t duration_ns;
};

/* Sets a label and keeps the set sorted. An empty VALUE removes NAME. Returns -E2BIG over a limit,
 * -EINVAL if NAME is not a Prometheus name. */
int labels_set(struct labels *labels, const char *name, const char *value);
const char *labels_get(const struct labels *labels, const char *name); /* NULL = none */
int labels_copy(const struct labels *labels, struct labels *ret_labels);
void labels_deinit(struct labels *labels);
void payload_deinit(struct payload *payload);
