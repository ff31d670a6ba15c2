/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shared by probed_files.c, the table, and probed_attach.c, which chooses and attaches. */
#include "agent/sampler/probed_files/probed_files.h"
#include "base/map.h"

struct probed_entry {
	struct module *module; /* borrowed; NULL = swept */
	char *path;
	struct build_id build_id;
	enum probed_file_state state;
	bool program; /* patterns without BIN apply */
	int fd; /* -1 = closed */
	int err;
	const char *step;
	size_t probeable, excluded, vendored;
	struct latency_attached *attached; /* NULL = none */
};

struct probed_files {
	struct probed_files_options options;
	struct probed_entry *items;
	size_t count, capacity;
	struct map by_module; /* module number → index into items */
	struct probed_function *functions;
	size_t function_count, function_capacity;
	struct map by_probe; /* number of the probe → index into functions */
	size_t measured; /* functions that count towards max_functions */
	size_t *matches; /* of each wanted pattern */
};

/* Chooses the functions of file NUMBER by INDEX, which has functions, and attaches them. */
void probed_attach(struct probed_files *files, size_t number, const struct index *index);
