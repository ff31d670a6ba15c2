/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A directory for a spool, and distinct payloads that can be verified. */
#include <stdbool.h>
#include <stdint.h>

#include "agent/server/export/spool/spool.h"

struct spool_fixture {
	char directory[64];
	struct metrics metrics;
};

void spool_fixture_init(struct spool_fixture *f);
void spool_fixture_deinit(struct spool_fixture *f); /* removes the directory */
/* Makes a payload with NUMBER in its labels, time and bytes, and SIZE bytes of pprof. */
void spool_fixture_payload(uint64_t number, size_t size, struct payload *ret_payload);
/* Returns the payload's number; fails the test if anything in it has changed. */
uint64_t spool_fixture_check(const struct payload *payload);
/* Options with LIMIT_BYTES for TARGETS, a NULL-terminated list. */
struct spool_options spool_fixture_options(
	struct spool_fixture *f, uint64_t limit_bytes, const char *const *targets);
/* Stores the path of segment file N in PATH; returns false if there are fewer. */
bool spool_fixture_segment(const struct spool_fixture *f, size_t n, char path[128]);
/* Returns the random seed, $FATHOM_TEST_SEED or 1, and prints it for reproduction. */
unsigned int spool_fixture_seed(void);
/* Opens a spool of LIMIT bytes in the fixture's directory. */
struct spool *spool_fixture_open(
	struct spool_fixture *f, uint64_t limit, const char *const *targets);
/* Puts payload NUMBER; returns what spool_put() returns. */
int spool_fixture_put(struct spool *s, uint64_t number, size_t size);
/* Returns the number of the next payload of TARGET, 0 if there is none. */
uint64_t spool_fixture_peek(struct spool *s, size_t target);
/* Like spool_fixture_peek(), but also delivers the payload, which must not be in delivery yet. */
uint64_t spool_fixture_take(struct spool *s, size_t target);
