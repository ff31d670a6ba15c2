/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sha256.h"

#include <endian.h>
#include <string.h>

#include "base/cleanup.h"

enum { ROUNDS = 64, LENGTH_AT = 56 };

/* FIPS 180-4, 4.2.2: of the cube roots of the first 64 primes. */
static const uint32_t constants[ROUNDS] = {
	/* clang-format off */
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
	/* clang-format on */
};

/* 5.3.3: of the square roots of the first 8. */
static const uint32_t start[8] = {
	/* clang-format off */
	0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
	/* clang-format on */
};

static uint32_t rotate(uint32_t x, unsigned int by)
{
	return x >> by | x << (32 - by);
}

/* 6.2.2, step 1. */
static void expand(const uint8_t *block, uint32_t words[ROUNDS])
{
	memcpy(words, block, SHA256_BLOCK_BYTES);
	for (int i = 0; i < 16; i++)
		words[i] = be32toh(words[i]);
	for (int i = 16; i < ROUNDS; i++) {
		uint32_t a = words[i - 15], b = words[i - 2];

		words[i] = words[i - 16] + words[i - 7] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) +
			   (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
	}
}

/* The working variable a (0) to h (7) in round I: instead of moving all, they are counted on. */
#define VARIABLE(s, number, i) ((s)[((number) - (i)) & 7])

/* Step 3, one round. */
static inline void turn(uint32_t s[8], unsigned int i, uint32_t word)
{
	uint32_t a = VARIABLE(s, 0, i), b = VARIABLE(s, 1, i), c = VARIABLE(s, 2, i);
	uint32_t e = VARIABLE(s, 4, i), f = VARIABLE(s, 5, i), g = VARIABLE(s, 6, i);
	uint32_t sum = VARIABLE(s, 7, i) + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) +
		       ((e & f) ^ (~e & g)) + word;
	uint32_t other =
		(rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));

	VARIABLE(s, 3, i) += sum;
	VARIABLE(s, 7, i) = sum + other;
}

static void add_block(struct sha256 *s, const uint8_t *block)
{
	uint32_t words[ROUNDS], state[8];

	expand(block, words);
	memcpy(state, s->state, sizeof(state));
	for (unsigned int i = 0; i < ROUNDS; i += 8) {
#pragma GCC unroll 8
		for (unsigned int j = 0; j < 8; j++)
			turn(state, j, words[i + j] + constants[i + j]);
	}
	for (int i = 0; i < 8; i++)
		s->state[i] += state[i];
}

void sha256_init(struct sha256 *s)
{
	*s = (struct sha256){ .bytes = 0 };
	memcpy(s->state, start, sizeof(start));
}

void sha256_update(struct sha256 *s, const void *bytes, size_t size)
{
	const uint8_t *at = bytes;

	while (size) {
		size_t held = s->bytes % SHA256_BLOCK_BYTES;
		size_t part = MIN(size, SHA256_BLOCK_BYTES - held);

		memcpy(s->block + held, at, part);
		s->bytes += part;
		at += part;
		size -= part;
		if (held + part == SHA256_BLOCK_BYTES)
			add_block(s, s->block);
	}
}

void sha256_finish(struct sha256 *s, uint8_t ret_digest[SHA256_BYTES])
{
	static const uint8_t padding[SHA256_BLOCK_BYTES] = { 0x80 };
	uint64_t bits = htobe64(s->bytes * 8);
	size_t held = s->bytes % SHA256_BLOCK_BYTES;
	uint32_t word;

	sha256_update(s, padding,
		held < LENGTH_AT ? LENGTH_AT - held : SHA256_BLOCK_BYTES + LENGTH_AT - held);
	sha256_update(s, &bits, sizeof(bits));
	for (int i = 0; i < 8; i++) {
		word = htobe32(s->state[i]);
		memcpy(ret_digest + 4 * i, &word, sizeof(word));
	}
}
