/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The files whose tables BPF's VMA lookup can use: which module each file is, as learned from a
 * sample, and where its code lies. Serves all processes at once.
 */
#include <stdbool.h>
#include <stdint.h>

#include "agent/sampler/process/mappings.h"
#include "agent/sampler/unwind/target.h"
#include "base/map.h"

struct unwind;

struct files {
	struct map known; /* hash of struct abi_file → struct known_file */
	struct map by_module; /* module's number → the first of its files */
	uint32_t tick; /* counts the changes reported to the kernel */
};

void files_init(struct files *f);
void files_deinit(struct files *f);
/*
 * Records that FILE is MODULE. Returns -EAGAIN if there is no room now, -E2BIG for too many files,
 * -ENOMEM.
 */
int files_learn(struct unwind *u, const struct abi_file *file, const struct module *module);
/* Call it when a module's index is ready, or will not come. */
void files_modules_changed(struct unwind *u);
void files_forget_module(struct unwind *u, const struct module *module);
void files_forget_all(struct unwind *u);
