/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The running kernel's type information, read once for all BPF objects, and for each reduced to
 * what that object may ask for. libbpf by itself reads all of it for each object, and goes through
 * its hundred thousand types once for each struct that the object names: a third of the CPU time
 * that a start takes.
 */
struct btf;
/* NULL: libbpf reads by itself what it needs. */
struct kernel_types;

/* -ENOENT: the kernel tells nothing. */
int kernel_types_create(struct kernel_types **ret_types);
void kernel_types_destroy(struct kernel_types *t);
/* What an object is opened with (btf_custom_path); valid until the end of T. */
const char *kernel_types_path(const struct kernel_types *t);
/* For the object with the types OBJECT, from now on until the next one. */
int kernel_types_reduce(struct kernel_types *t, const struct btf *object);
/* The same of any kernel's types; it is the caller's, as the result is. For tests. */
int kernel_types_reduced(const struct btf *kernel, const struct btf *object, struct btf **ret_btf);
