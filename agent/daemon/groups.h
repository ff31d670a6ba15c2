/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The process groups of a window: by container, else by program; the kernel's own threads are one
 * group. Stored samples have their group's name as the label `fathom_group`.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/sampler/seam/window_processes.h"
#include "agent/sampler/profile/profile.h"
#include "agent/server/store/file_name.h"
#include "base/intern.h"
#include "base/map.h"

struct groups {
	struct intern names; /* a group's number is the number of its name */
	struct map of_process; /* generation number → group number */
};

enum { GROUPS_LIMIT = 4096 };

/* Assigns PROFILE's samples to groups, numbered from 1 to groups_count(). */
int groups_init(
	struct groups *g, const struct profile *profile, const struct window_processes *processes);
void groups_deinit(struct groups *g);
uint32_t groups_count(const struct groups *g);
/* `container-0123456789ab`, a program's file name, or `kernel`. Untrusted bytes. */
const char *groups_name(const struct groups *g, uint32_t group);
/* 0 if the process has no sample in the profile. */
uint32_t groups_of(const struct groups *g, uint32_t process_number);

/* What stored samples say of their group. */
struct groups_label {
	const struct groups *groups;
	uint32_t group; /* whose name that is; 0 = none yet */
	char name[FILE_NAME_LABEL_BYTES];
};

/* The group's cleaned name; struct report_options.group with a struct groups_label for context. */
const char *groups_label_of(void *context, const struct profile_sample *sample);
