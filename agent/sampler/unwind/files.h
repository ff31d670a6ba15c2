/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The files that the kernel knows by itself when it finds mappings in its own tree: which module
 * each is, as a sample has told, and where its code lies. Holds for all processes at once.
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
	uint32_t turn; /* counts the changes, as the kernel was told */
};

void files_init(struct files *f);
void files_deinit(struct files *f);
/* FILE is MODULE. -EAGAIN there is no room now, -ENOMEM. */
int files_learn(struct unwind *u, const struct abi_file *file, const struct module *module);
/* The index of some module came, or will not come. */
void files_modules_changed(struct unwind *u);
void files_forget_module(struct unwind *u, const struct module *module);
void files_forget_all(struct unwind *u);
