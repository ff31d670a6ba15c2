/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The running kernel's BTF, read once for all BPF objects and reduced for each to the types that it
 * may ask for. libbpf would read all of it for each object and scan its hundred thousand types for
 * each struct that the object names, which was a third of the CPU time at startup.
 */
struct btf;
/* NULL: libbpf reads the kernel's BTF itself. */
struct kernel_types;

/* Returns -ENOENT if the kernel has no BTF. */
int kernel_types_create(struct kernel_types **ret_types);
void kernel_types_destroy(struct kernel_types *t);
/* The file to open an object with (btf_custom_path); valid until T is destroyed. */
const char *kernel_types_path(const struct kernel_types *t);
/* Reduces that file to what the object with the types OBJECT needs, until the next call. */
int kernel_types_reduce(struct kernel_types *t, const struct btf *object);
/* Reduces KERNEL, any kernel's types. The caller owns *RET_BTF. For tests. */
int kernel_types_reduced(const struct btf *kernel, const struct btf *object, struct btf **ret_btf);
