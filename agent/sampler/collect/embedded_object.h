/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * BPF objects are compressed in the program: it needs two or three of them, once. The skeletons'
 * NAME__elf_bytes() are calls of this (bpf/skeleton.awk).
 */
#include <stddef.h>

struct bpf_object;

/* The bytes of the gzip member at COMPRESSED, for free() once libbpf has read them; NULL if memory
 * is short. */
void *embedded_object(const char *compressed, size_t size, size_t *ret_size);
/*
 * Closes the descriptor of the types of OBJECT, which is loaded. libbpf would keep it open as long
 * as the object; only loading programs needs it.
 */
void embedded_object_close_types(struct bpf_object *object);
