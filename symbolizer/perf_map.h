/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The map that a JIT writes: /tmp/perf-PID.map below the process's root, lines `START SIZE NAME` in
 * hex, appended as code is compiled; a later line wins over what it overlaps. Text of a foreign
 * process, so lines that make no sense are skipped and counted, and the size is bounded (64 MiB,
 * a million functions): what exceeds it has no name.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct perf_map;

int perf_map_create(struct perf_map **ret_map);
void perf_map_destroy(struct perf_map *m);
/*
 * Reads what was appended since the last call (all of it, when the file was replaced or got
 * shorter). A line that is still without its end is left for the next call. -EBADMSG: not a regular
 * file. -E2BIG: over the limit; what was read before stays.
 */
int perf_map_update(struct perf_map *m, int fd);
/* The name at PC; lives until the next update. */
bool perf_map_lookup(
	const struct perf_map *m, uint64_t pc, const char **ret_name, uint64_t *ret_start);
/* Functions that a PC can still be in. */
size_t perf_map_count(const struct perf_map *m);
size_t perf_map_bad_lines(const struct perf_map *m);
size_t perf_map_bytes(const struct perf_map *m);
