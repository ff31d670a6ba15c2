/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * BPF objects are compressed in the program: it needs two or three of them, once. The skeletons'
 * NAME__elf_bytes() are calls of this (bpf/skeleton.awk).
 */
#include <stddef.h>

/* The bytes of the gzip member at COMPRESSED, for free() once libbpf has read them; NULL if memory
 * is short. */
void *embedded_object(const char *compressed, size_t size, size_t *ret_size);
