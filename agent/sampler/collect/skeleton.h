/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The BPF objects lie compressed in the program. Their generated skeletons (bpf/skeleton.awk) call
 * this where libbpf's own would take the bytes as they are; everything else of a skeleton is used
 * as always.
 */
struct bpf_object_skeleton;
struct bpf_object_open_opts;

/* Negative errno as bpf_object__open_skeleton(); -EBADMSG: not what was embedded. */
int skeleton_open(struct bpf_object_skeleton *s, const struct bpf_object_open_opts *opts);
