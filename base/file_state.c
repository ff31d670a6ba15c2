/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file_state.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <nettle/sha2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

enum {
	FUSE_MAGIC = 0x65735546, /* FUSE_SUPER_MAGIC, missing in older linux/magic.h */
	HANDLE_ANY = 0x200, /* AT_HANDLE_FID, Linux 6.5 */
	HANDLE_BYTES = 128, /* MAX_HANDLE_SZ */
	/* An overlay's handle, struct ovl_fh in fs/overlayfs/overlayfs.h. */
	OVERLAY_FH_MAGIC_AT = 4,
	OVERLAY_FH_TYPE_AT = 7, /* of the handle inside */
	OVERLAY_FH_UUID_AT = 8, /* of the file system inside */
	OVERLAY_FH_BYTES = 24, /* the handle inside begins here */
	OVERLAY_FH_MAGIC = 0xfb,
	/* Types of handles, include/linux/exportfs.h. */
	HANDLE_OF_FUSE = 0x81,
	HANDLE_OF_FUSE_PARENT = 0x82,
	HANDLE_OF_OVERLAY = 0xf8,
};

struct handle {
	struct file_handle head;
	uint8_t bytes[HANDLE_BYTES];
};

static uint64_t file_state_ns(const struct statx_timestamp *t)
{
	return (uint64_t)t->tv_sec * UINT64_C(1000000000) + t->tv_nsec;
}

/*
 * Whether the file inside an overlay is of a file system that only the administrator can mount, or
 * of a tmpfs. XFS has handles like those of FUSE, but also a UUID, which FUSE never has; an
 * overlay's own UUID is in a file attribute that its owner can write.
 */
static bool is_handle_of_kernel(const uint8_t *fh, unsigned int size)
{
	static const uint8_t no_uuid[16];
	uint8_t type;

	if (size <= OVERLAY_FH_BYTES || fh[OVERLAY_FH_MAGIC_AT] != OVERLAY_FH_MAGIC)
		return false;
	type = fh[OVERLAY_FH_TYPE_AT];
	if (type == HANDLE_OF_FUSE || type == HANDLE_OF_FUSE_PARENT)
		return memcmp(fh + OVERLAY_FH_UUID_AT, no_uuid, sizeof(no_uuid)) != 0;
	return type != HANDLE_OF_OVERLAY;
}

static void set_overlay_handle(int fd, struct file_id *id)
{
	struct handle handle = { .head = { .handle_bytes = sizeof(handle.bytes) } };
	uint8_t digest[2 * sizeof(uint64_t)];
	struct sha256_ctx context;
	const uint8_t *fh = (const uint8_t *)&handle + offsetof(struct file_handle, f_handle);
	int mount_id;

	if (name_to_handle_at(fd, "", &handle.head, &mount_id, AT_EMPTY_PATH | HANDLE_ANY)) {
		/* An older kernel knows no such flag; it knows no birth time from FUSE either. */
		id->claimed = errno != EINVAL || id->claimed;
		return;
	}
	if (!is_handle_of_kernel(fh, handle.head.handle_bytes)) {
		id->claimed = 1;
		return;
	}
	sha256_init(&context);
	sha256_update(&context, handle.head.handle_bytes, fh);
	sha256_digest(&context, sizeof(digest), digest);
	memcpy(&id->device, digest, sizeof(id->device));
	memcpy(&id->inode, digest + sizeof(id->device), sizeof(id->inode));
}

int file_state_read(int fd, struct file_id *ret_id)
{
	bool has_birth;
	struct file_id id;
	struct statx stx;
	struct statfs fs;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &stx))
		return -errno;
	has_birth = stx.stx_mask & STATX_BTIME;
	id = (struct file_id){
		.device = makedev(stx.stx_dev_major, stx.stx_dev_minor),
		.inode = stx.stx_ino,
		.mtime_ns = file_state_ns(&stx.stx_mtime),
		.size_bytes = stx.stx_size,
		.birth_ns = file_state_ns(has_birth ? &stx.stx_btime : &stx.stx_ctime),
		.changed_ns = file_state_ns(&stx.stx_ctime),
	};
	/* File systems without a block device: FUSE, overlays, and others that cost no more. */
	if (stx.stx_dev_major == 0) {
		if (fstatfs(fd, &fs))
			return -errno;
		id.claimed = fs.f_type == FUSE_MAGIC || !has_birth;
		if (fs.f_type == OVERLAYFS_SUPER_MAGIC)
			set_overlay_handle(fd, &id);
	}
	*ret_id = id;
	return 0;
}
