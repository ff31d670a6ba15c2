/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Functions of a profile's stacks as numbers. A function is a (name, module) pair; a frame is a run
 * of functions, one for each inlined call. Pass functions_add() to stacks_create() as the output,
 * with a struct functions as context: the ids it returns are frames.
 */
#include <stdint.h>

#include "agent/report/stacks.h"
#include "base/intern.h"

struct functions {
	struct intern names; /* `NAME NUL MODULE`; function numbers, from 1 */
	struct intern frames; /* runs of function numbers, innermost first */
};

int functions_init(struct functions *f);
void functions_deinit(struct functions *f);
/* A stacks_frame_fn; CONTEXT is a struct functions. */
int functions_add(void *context, const struct symbolized *frame, uint32_t *ret_frame);
/* The functions of FRAME, innermost first; at least one. */
const uint32_t *functions_of_frame(const struct functions *f, uint32_t frame, size_t *ret_count);
uint32_t functions_innermost(const struct functions *f, uint32_t frame);
size_t functions_count(const struct functions *f); /* the highest function number */
const char *functions_name(const struct functions *f, uint32_t function); /* foreign bytes */
const char *functions_module(const struct functions *f, uint32_t function); /* path, or "" */
