/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Pieces of stack made small while their samples wait. Most words of a stack are zero, or lie near
 * one that was met before: pointers into the same stack, code of the same module. Without loss: it
 * is not known yet which words the walk will ask for.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What SIZE bytes may become at worst. */
#define STACK_PACK_BOUND(size) ((size) + (size) / 32 + 1)

/* SIZE bytes, a multiple of 8. Writes to PACKED, which has room for the worst; returns its size. */
size_t stack_pack(const uint8_t *bytes, size_t size, uint8_t *packed);
/* Makes the SIZE bytes anew. False, and anything in BYTES: PACKED is not what stack_pack() wrote.
 */
bool stack_unpack(const uint8_t *packed, size_t packed_size, uint8_t *bytes, size_t size);
