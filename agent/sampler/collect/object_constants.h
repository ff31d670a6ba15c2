/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The constants of a BPF object, which the sampler sets before the object is loaded. */
#include <stddef.h>

struct bpf_object;

/*
 * OBJECT's constants SECTION, a structure of SIZE bytes. Until OBJECT is loaded, this is its own
 * copy, which may be changed. NULL = it has no such section, or a smaller one.
 */
void *object_constants(const struct bpf_object *object, const char *section, size_t size);
