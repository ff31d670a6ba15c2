/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Packs pieces of stack while their samples wait for a module's index. Most words of a stack are
 * zero, or close to a word before them: pointers into the same stack, code of the same module. It
 * is lossless, because it is not known yet which words the walk will read.
 *
 * Gain: a third to a quarter of the stack remains, so that three to four times as many samples wait
 * within the same memory. Together with building awaited indexes first it raised the share of whole
 * stacks, with an empty cache on a busy machine, from 36..79 % to 84 %.
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
