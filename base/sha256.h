/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * SHA-256 (FIPS 180-4). Only because OpenTelemetry defines the identity of a file by it and a
 * library for that would be large; nothing here is secret.
 */
#include <stddef.h>
#include <stdint.h>

enum { SHA256_BYTES = 32, SHA256_BLOCK_BYTES = 64 };

struct sha256 {
	uint32_t state[8];
	uint64_t bytes; /* so far */
	uint8_t block[SHA256_BLOCK_BYTES]; /* what of them fills no block yet */
};

void sha256_init(struct sha256 *s);
void sha256_update(struct sha256 *s, const void *bytes, size_t size);
/* S is used up by it. */
void sha256_finish(struct sha256 *s, uint8_t ret_digest[SHA256_BYTES]);
