/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/server/export/labels/md5.h"

#include <string.h>

enum { BLOCK = 64, LENGTH_AT = 56, ROUNDS = 64 };

/* RFC 1321, 3.4: floor(2^32 * abs(sin(i + 1))). */
static const uint32_t sines[ROUNDS] = {
	0xd76aa478,
	0xe8c7b756,
	0x242070db,
	0xc1bdceee,
	0xf57c0faf,
	0x4787c62a,
	0xa8304613,
	0xfd469501,
	0x698098d8,
	0x8b44f7af,
	0xffff5bb1,
	0x895cd7be,
	0x6b901122,
	0xfd987193,
	0xa679438e,
	0x49b40821,
	0xf61e2562,
	0xc040b340,
	0x265e5a51,
	0xe9b6c7aa,
	0xd62f105d,
	0x02441453,
	0xd8a1e681,
	0xe7d3fbc8,
	0x21e1cde6,
	0xc33707d6,
	0xf4d50d87,
	0x455a14ed,
	0xa9e3e905,
	0xfcefa3f8,
	0x676f02d9,
	0x8d2a4c8a,
	0xfffa3942,
	0x8771f681,
	0x6d9d6122,
	0xfde5380c,
	0xa4beea44,
	0x4bdecfa9,
	0xf6bb4b60,
	0xbebfbc70,
	0x289b7ec6,
	0xeaa127fa,
	0xd4ef3085,
	0x04881d05,
	0xd9d4d039,
	0xe6db99e5,
	0x1fa27cf8,
	0xc4ac5665,
	0xf4292244,
	0x432aff97,
	0xab9423a7,
	0xfc93a039,
	0x655b59c3,
	0x8f0ccc92,
	0xffeff47d,
	0x85845dd1,
	0x6fa87e4f,
	0xfe2ce6e0,
	0xa3014314,
	0x4e0811a1,
	0xf7537e82,
	0xbd3af235,
	0x2ad7d2bb,
	0xeb86d391,
};

/* By round of sixteen steps, then by step modulo four. */
static const uint8_t shifts[4][4] = {
	{ 7, 12, 17, 22 },
	{ 5, 9, 14, 20 },
	{ 4, 11, 16, 23 },
	{ 6, 10, 15, 21 },
};

static uint32_t rotate(uint32_t x, unsigned int by)
{
	return x << by | x >> (32 - by);
}

/* The round's function of three words, and which word of the block the step takes. */
static uint32_t mix(unsigned int step, const uint32_t s[4], unsigned int *ret_word)
{
	const uint32_t b = s[1], c = s[2], d = s[3];

	switch (step / 16) {
	case 0:
		*ret_word = step;
		return (b & c) | (~b & d);
	case 1:
		*ret_word = (5 * step + 1) % 16;
		return (b & d) | (c & ~d);
	case 2:
		*ret_word = (3 * step + 5) % 16;
		return b ^ c ^ d;
	default:
		*ret_word = (7 * step) % 16;
		return c ^ (b | ~d);
	}
}

static void add_block(uint32_t state[4], const uint8_t *block)
{
	uint32_t words[16], s[4];

	/* Little-endian, as both supported architectures are. */
	memcpy(words, block, BLOCK);
	memcpy(s, state, sizeof(s));
	for (unsigned int step = 0; step < ROUNDS; step++) {
		unsigned int word;
		uint32_t mixed = mix(step, s, &word);
		uint32_t sum = s[0] + mixed + words[word] + sines[step];

		s[0] = s[3];
		s[3] = s[2];
		s[2] = s[1];
		s[1] += rotate(sum, shifts[step / 16][step % 4]);
	}
	for (unsigned int i = 0; i < 4; i++)
		state[i] += s[i];
}

void md5(const void *bytes, size_t size, uint8_t ret_digest[MD5_BYTES])
{
	uint32_t state[4] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476 };
	uint64_t bits = (uint64_t)size * 8;
	const uint8_t *at = bytes;
	size_t left = size;
	uint8_t last[2 * BLOCK] = { 0 };
	size_t padded;

	for (; left >= BLOCK; left -= BLOCK, at += BLOCK)
		add_block(state, at);
	if (left)
		memcpy(last, at, left);
	last[left] = 0x80;
	padded = left < LENGTH_AT ? BLOCK : 2 * BLOCK;
	memcpy(last + padded - sizeof(bits), &bits, sizeof(bits));
	for (size_t i = 0; i < padded; i += BLOCK)
		add_block(state, last + i);
	memcpy(ret_digest, state, MD5_BYTES);
}
