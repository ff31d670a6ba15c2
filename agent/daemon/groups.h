/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The process groups of a window: a container, else a program, else the kernel's own threads. Each
 * becomes one stored profile, so that one service's samples are together and no upload is too big.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/sampler/process/processes.h"
#include "agent/sampler/profile/profile.h"
#include "base/intern.h"
#include "base/map.h"

struct groups {
	struct intern names; /* a group's number is its name's */
	struct map of_process; /* generation number → group number */
};

enum { GROUPS_LIMIT = 4096 };

/* Finds the groups of PROFILE's samples; numbers run from 1 to groups_count(). */
int groups_init(struct groups *g, const struct profile *profile, struct processes *processes);
void groups_deinit(struct groups *g);
uint32_t groups_count(const struct groups *g);
/* `container-0123456789ab`, a program's file name, or `kernel`; foreign bytes. */
const char *groups_name(const struct groups *g, uint32_t group);
/* 0 = none (over the limit). */
uint32_t groups_of(const struct groups *g, uint32_t process_number);
