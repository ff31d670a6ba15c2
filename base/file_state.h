/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the kernel says of an open file, as its identity (struct file_id): nothing of it can be
 * chosen by the file's owner, but size and modification time.
 *
 * An overlay shows device numbers of its own, so the containers of one image would have as many
 * files as there are containers. For a file on an overlay, device and inode are therefore a hash of
 * its file handle (Linux 6.6), which names the inode below. The handle of a file that was copied up
 * still names the one it was copied from; its birth time is its own.
 *
 * A FUSE server can claim any numbers, and a user may mount one, or an overlay above one. Their
 * files are `claimed`.
 */
#include "base/module_id.h"

int file_state_read(int fd, struct file_id *ret_id);
