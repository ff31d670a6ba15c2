/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A directory of its own for a spool, and payloads that can be told apart and checked. */
#include <stdbool.h>
#include <stdint.h>

#include "agent/server/export/spool/spool.h"

struct spool_fixture {
	char directory[64];
	struct metrics metrics;
};

void spool_fixture_init(struct spool_fixture *f);
void spool_fixture_deinit(struct spool_fixture *f); /* removes all */
/* NUMBER is in its labels, its time and its bytes; SIZE bytes of pprof. */
void spool_fixture_payload(uint64_t number, size_t size, struct payload *ret_payload);
/* The number; fails the test when anything of the payload is not as it was made. */
uint64_t spool_fixture_check(const struct payload *payload);
/* Options with LIMIT_BYTES for TARGETS, a NULL-terminated list. */
struct spool_options spool_fixture_options(
	struct spool_fixture *f, uint64_t limit_bytes, const char *const *targets);
/* The path of the N-th segment file, in order; false when there are fewer. */
bool spool_fixture_segment(const struct spool_fixture *f, size_t n, char path[128]);
/*
 * What random choices begin with: 1, or $FATHOM_TEST_SEED. Printed, so that a failure can be had
 * again.
 */
unsigned int spool_fixture_seed(void);
/* A spool of LIMIT bytes in the fixture's directory. */
struct spool *spool_fixture_open(
	struct spool_fixture *f, uint64_t limit, const char *const *targets);
/* What spool_put() returns for it. */
int spool_fixture_put(struct spool *s, uint64_t number, size_t size);
/* The number of what is peeked, 0 for none. */
uint64_t spool_fixture_peek(struct spool *s, size_t target);
/* The same; it is begun for the first time, and done. */
uint64_t spool_fixture_take(struct spool *s, size_t target);
