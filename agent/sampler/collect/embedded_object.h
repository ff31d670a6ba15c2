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
 * To be called when OBJECT is loaded: closes the descriptor of its types, which only loading needs,
 * and which libbpf would keep open as long as the object.
 */
void embedded_object_loaded(struct bpf_object *object);
