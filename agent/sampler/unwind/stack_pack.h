/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Compresses pieces of stack while their samples wait for a module's index. Most words of a stack
 * are zero or close to an earlier word: pointers into the same stack, code of the same module. It
 * is lossless, since nobody knows yet which words the walk will read.
 *
 * Gain: a third to a quarter of the size, so three to four times as many samples can wait in the
 * same memory. Together with building awaited indexes first, it raised the share of complete stacks
 * with an empty cache on a busy machine from 36..79 % to 84 %.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The maximal packed size of SIZE bytes. */
#define STACK_PACK_BOUND(size) ((size) + (size) / 32 + 1)

/*
 * Packs SIZE bytes, a multiple of 8, into PACKED, which has room for STACK_PACK_BOUND(SIZE).
 * Returns the packed size.
 */
size_t stack_pack(const uint8_t *bytes, size_t size, uint8_t *packed);
/* Restores the SIZE bytes. Returns false, with BYTES undefined, if PACKED is invalid. */
bool stack_unpack(const uint8_t *packed, size_t packed_size, uint8_t *bytes, size_t size);
