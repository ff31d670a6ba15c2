/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * VMA lookup: finds the mapping of the current process that contains an address, and its file, in
 * the kernel's own tree of mappings (a maple tree, from 6.1 on).
 *
 * Gain: a table that user space writes knows a process only after its first sample was read. Under
 * a loop of gcc and g++ at 199 Hz the VMA lookup leaves 10 % of the walks to user space instead of
 * 62 %; 91.5 % of the stacks are complete instead of 87 %, and maps take 6.0 MB instead of 7.1. On
 * a machine that runs some gcc beside long-lived programs it is 10 % instead of 31 %: BPF takes 1.9
 * us a sample more, user space 6.7 us less (medians of six runs in turn, 199 Hz).
 * Switch for tests: --test-without=vma-lookup.
 *
 * The tree is read as plain memory, without its lock: in interrupt context bpf_find_vma() could
 * look up only one address, because the lock it takes is released after the program, and it would
 * fail whenever another thread changes a mapping. A result is used only if it is plausible: the
 * mapping must contain the address and belong to the process. The tree's encoding is no stable
 * interface, so a probe program first looks up mappings that user space knows; if a result is
 * wrong, user space falls back to its table of ranges.
 */
#include <stdbool.h>
#include <stddef.h>
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/abi/sample.h"
#include "bpf/config.bpf.h"
#include "bpf/kernel_types.h"
#include "bpf/task.bpf.h"

enum {
	VMA_TREE_DEPTH =
		8, /* ten branches at each level but the last, of 65530 mappings by default */
	VMA_NODE_WORDS = 32,
	VMA_NODE_ALIGN = 256, /* the bits below are the node's type and flags */
	VMA_NODE_TYPE_SHIFT = 3, /* lib/maple_tree.c: MAPLE_NODE_TYPE_SHIFT, _MASK */
	VMA_NODE_TYPE_MASK = 0x0f,
	VMA_NODE_LEAF = 1, /* enum maple_type */
	VMA_NODE_RANGE = 2,
	VMA_NODE_BRANCH = 3, /* maple_arange_64 */
	VMA_ENTRY_MASK = 3, /* include/linux/xarray.h: the root is a node */
	VMA_ENTRY_NODE = 2,
	VMA_PIVOTS = 15, /* at most */
	VMA_EXECUTABLE = 0x4, /* VM_EXEC */
	/* include/linux/fs.h: FMODE_BACKING, from 6.14 on bit 24 and before that 25. */
	VMA_FILE_MAY_BACK = 3 << 24,
	VMA_ERROR = -14, /* -EFAULT: the tree cannot be read, or is being changed */
	VMA_UNREADABLE = 1, /* instead of an entry; none has this value */
};

/* Whether this kernel has all fields that are read here. */
static __always_inline bool vma_supported(void)
{
	return bpf_core_field_exists(struct mm_struct, mm_mt) &&
	       bpf_core_field_exists(struct mm_struct, context.vdso) &&
	       bpf_core_field_exists(struct maple_range_64, slot) &&
	       bpf_core_field_exists(struct maple_arange_64, slot) &&
	       bpf_core_field_exists(struct vm_area_struct, vm_flags) &&
	       bpf_core_field_exists(struct vm_area_struct, vm_file) &&
	       (bpf_core_field_exists(struct inode___seconds, i_mtime_sec) ||
		       bpf_core_field_exists(struct inode___inner, __i_mtime) ||
		       bpf_core_field_exists(struct inode___plain, i_mtime));
}

/* 1 if A < B, else 0. Without a branch: the verifier would follow both sides for every pivot. */
static __always_inline __u64 vma_below(__u64 a, __u64 b)
{
	return ((~a & b) | ((~a | b) & (a - b))) >> 63;
}

/* The entry to follow for ADDRESS: that of the first pivot not below it. */
static __always_inline __u64 vma_entry(const __u64 *node, __u64 is_branch, __u64 address)
{
	__u64 first_pivot = bpf_core_field_offset(struct maple_range_64, pivot) / 8;
	__u64 slots = bpf_core_field_offset(struct maple_range_64, slot) / 8;
	__u64 branch_slots = bpf_core_field_offset(struct maple_arange_64, slot) / 8;
	__u64 below = 1, index = 0;

	/* Without these the compiler merges both offsets into one load, which cannot be relocated.
	 */
	barrier_var(slots);
	barrier_var(branch_slots);
	if (is_branch)
		slots = branch_slots;
#pragma clang loop unroll(disable) /* unrolled, it would take half of the stack */
	for (__u64 i = 0; i < VMA_PIVOTS; i++) {
		__u64 at = first_pivot + i, pivot = node[at & (VMA_NODE_WORDS - 1)];

		below &= vma_below(pivot, address) & vma_below(at, slots);
		index += below;
	}
	return node[(slots + index) & (VMA_NODE_WORDS - 1)];
}

static __always_inline __u64 vma_node_type(__u64 entry)
{
	return (entry >> VMA_NODE_TYPE_SHIFT) & VMA_NODE_TYPE_MASK;
}

/* The entry for ADDRESS in the node that ENTRY leads to, or VMA_UNREADABLE. NODE is a buffer. */
static __always_inline __u64 vma_read_node(__u64 *node, __u64 entry, __u64 address)
{
	void *from = (void *)(entry & -(__u64)VMA_NODE_ALIGN);

	if (!vma_supported() || bpf_probe_read_kernel(node, VMA_NODE_WORDS * sizeof(*node), from))
		return VMA_UNREADABLE;
	return vma_entry(node, vma_node_type(entry) == VMA_NODE_BRANCH, address);
}

/*
 * The same with a buffer of the program that includes this. A global function: the verifier follows
 * it once, and not for each level of the tree.
 */
__u64 vma_next(__u64 entry, __u64 address);

/* Sets *RET_VMA, to NULL if nothing is mapped at ADDRESS. Returns 0, or VMA_ERROR. */
static __always_inline int vma_find(
	struct mm_struct *mm, __u64 address, struct vm_area_struct **ret_vma)
{
	__u64 entry = (__u64)BPF_CORE_READ(mm, mm_mt.ma_root);

	if ((entry & VMA_ENTRY_MASK) != VMA_ENTRY_NODE)
		return VMA_ERROR;
	for (int i = 0; i < VMA_TREE_DEPTH; i++) {
		__u64 type = vma_node_type(entry);

		if (type < VMA_NODE_LEAF || type > VMA_NODE_BRANCH)
			return VMA_ERROR;
		entry = vma_next(entry, address);
		if (entry == VMA_UNREADABLE)
			return VMA_ERROR;
		if (type == VMA_NODE_LEAF) {
			*ret_vma = (struct vm_area_struct *)entry;
			return 0;
		}
	}
	return VMA_ERROR;
}

/*
 * Reads a field directly into its destination: each value that goes through a variable would take
 * room on the stack, which is small and shared with the callers.
 */
#define VMA_READ(to_, from_, field_) bpf_core_read(&(to_), sizeof(to_), &(from_)->field_)

static __always_inline void vma_mtime(void *inode, struct abi_file *ret_file)
{
	const struct inode___seconds *newest = inode;
	const struct inode___inner *newer = inode;
	const struct inode___plain *older = inode;

	if (bpf_core_field_exists(newest->i_mtime_sec)) {
		VMA_READ(ret_file->mtime_s, newest, i_mtime_sec);
		VMA_READ(ret_file->mtime_ns, newest, i_mtime_nsec);
	} else if (bpf_core_field_exists(newer->__i_mtime)) {
		VMA_READ(ret_file->mtime_s, newer, __i_mtime.tv_sec);
		VMA_READ(ret_file->mtime_ns, newer, __i_mtime.tv_nsec);
	} else {
		VMA_READ(ret_file->mtime_s, older, i_mtime.tv_sec);
		VMA_READ(ret_file->mtime_ns, older, i_mtime.tv_nsec);
	}
}

static __always_inline void vma_file(struct file *file, struct abi_file *ret_file)
{
	struct super_block *super;
	struct inode *inode;

	VMA_READ(inode, file, f_inode);
	VMA_READ(super, inode, i_sb);
	VMA_READ(ret_file->inode, inode, i_ino);
	VMA_READ(ret_file->size, inode, i_size);
	VMA_READ(ret_file->device, super, s_dev);
	VMA_READ(ret_file->generation, inode, i_generation);
	ret_file->reserved = 0;
	vma_mtime(inode, ret_file);
}

/*
 * For a mapped overlayfs file, the mapping has the underlying file, and /proc shows the overlay's.
 * The flag for such files has moved, and its old bit has another meaning now: what is then read of
 * an ordinary file matches nothing that user space knows, and is ignored there.
 */
static __always_inline void vma_shown(struct file *file, struct abi_shown_file *ret_shown)
{
	const struct backing_file *backing = (void *)file;
	struct super_block *super;
	struct inode *inode;
	struct dentry *dentry;
	__u32 mode;

	ret_shown->inode = 0;
	ret_shown->device = 0;
	ret_shown->reserved = 0;
	if (!bpf_core_field_exists(backing->user_path))
		return;
	VMA_READ(mode, file, f_mode);
	if (!(mode & VMA_FILE_MAY_BACK))
		return;
	VMA_READ(dentry, backing, user_path.dentry);
	VMA_READ(inode, dentry, d_inode);
	VMA_READ(super, inode, i_sb);
	VMA_READ(ret_shown->inode, inode, i_ino);
	VMA_READ(ret_shown->device, super, s_dev);
}

/* Fills in a mapping without a file: the vDSO, or anonymous memory. */
static __always_inline void vma_no_file(struct mm_struct *mm, struct abi_mapping *ret_mapping)
{
	__u64 vdso;

	VMA_READ(vdso, mm, context.vdso);
	ret_mapping->file.inode = vdso == ret_mapping->start ? ABI_FILE_VDSO : ABI_FILE_NONE;
	ret_mapping->file.size = 0;
	ret_mapping->file.mtime_s = 0;
	ret_mapping->file.mtime_ns = 0;
	ret_mapping->file.device = 0;
	ret_mapping->file.generation = 0;
	ret_mapping->file.reserved = 0;
	ret_mapping->shown.inode = 0;
	ret_mapping->shown.device = 0;
	ret_mapping->shown.reserved = 0;
}

/* Reads VMA into *RET_MAPPING. Returns VMA_ERROR if it does not contain ADDRESS, else 0. */
static __always_inline int vma_report(struct mm_struct *mm, struct vm_area_struct *vma,
	__u64 address, struct abi_mapping *ret_mapping)
{
	__u64 word;

	VMA_READ(ret_mapping->start, vma, vm_start);
	VMA_READ(ret_mapping->end, vma, vm_end);
	VMA_READ(word, vma, vm_mm);
	if (address < ret_mapping->start || address >= ret_mapping->end || word != (__u64)mm)
		return VMA_ERROR;
	VMA_READ(word, vma, vm_pgoff);
	ret_mapping->file_off = word << config.page_shift;
	VMA_READ(word, vma, vm_flags);
	ret_mapping->executable = word & VMA_EXECUTABLE ? 1 : 0;
	VMA_READ(word, vma, vm_file);
	if (word) {
		vma_file((struct file *)word, &ret_mapping->file);
		vma_shown((struct file *)word, &ret_mapping->shown);
	} else {
		vma_no_file(mm, ret_mapping);
	}
	return 0;
}

/*
 * A number that changes whenever the mappings of MM do; 0 if the kernel has no such counter, or the
 * mappings are being changed.
 */
static __always_inline __u32 vma_changes(struct mm_struct *mm)
{
	const struct mm_struct___sequence *newer = (void *)mm;
	const struct mm_struct___number *older = (void *)mm;

	if (bpf_core_field_exists(newer->mm_lock_seq.sequence)) {
		__u32 sequence = TASK_READ(newer, mm_lock_seq.sequence);

		return sequence & 1 ? 0 : sequence;
	}
	if (bpf_core_field_exists(older->mm_lock_seq))
		return TASK_READ(older, mm_lock_seq);
	return 0;
}
