/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Compresses pieces of stack while their samples wait for a module's index. Most words of a stack
 * are zero or close to an earlier word: pointers into the same stack, code of the same module. It
 * is lossless, since nobody knows yet which words the walk will read.
 *
 * Gain: memory. Of the 1301 walks that waited in a run of `record -a -F 499 --off-cpu` with an
 * empty cache, a stack took 1.9 KB instead of 6.9 KB and a walk in all 2.4 KB instead of 7.3 KB, so
 * three times as many can wait within the same limit. In seven such starts of the agent on a busy
 * machine no walk was refused; without packing, up to 49 were in four of seven. Switch for tests:
 * --test-without=packed-stacks.
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
