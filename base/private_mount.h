/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A kernel file system that need not be mounted anywhere: tracefs, debugfs, securityfs. */

/*
 * Opens PATH, relative, for reading in the file system of this KIND, by a mount that is in no
 * directory and ends with the descriptor. Needs CAP_SYS_ADMIN. Returns a descriptor or a negative
 * errno.
 */
int private_mount_open(const char *kind, const char *path);
