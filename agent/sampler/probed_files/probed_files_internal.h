/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shared by probed_files.c, the table, and probed_attach.c, which chooses and attaches. */
#include "agent/sampler/probed_files/probed_files.h"
#include "base/map.h"

/* Where functions are probed. */
struct probed_sites {
	struct latency_site *items;
	uint32_t *owners; /* index into probed_files.functions, of each */
	size_t count, capacity, owner_capacity;
};

void probed_sites_deinit(struct probed_sites *sites);

struct probed_entry {
	struct module *module; /* borrowed; NULL = swept */
	char *path;
	struct build_id build_id;
	enum probed_file_state state;
	bool program; /* patterns without BIN apply */
	int fd; /* -1 = closed */
	uint32_t pid; /* of the process for which `fd` was opened; 0 = none */
	int err;
	const char *step;
	size_t probeable, excluded, vendored;
	struct latency_attached *attached; /* NULL = none */
	size_t site_count; /* attached */

	/* In the background. */
	size_t first_function, function_end; /* its functions: being attached, or attached */
	struct latency_attaching *attaching; /* NULL = none, or not begun yet */
	bool cancelled; /* `attaching` is only to be reaped */
	struct probed_sites sites; /* being attached */
	struct latency_detaching *detaching; /* NULL = none */
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
/* ENTRY was attached, or not: ERR. Forgets its sites. */
void probed_attach_finish(struct probed_files *files, struct probed_entry *entry, int err);

void probed_entry_close(struct probed_entry *entry);

/* probed_background.c */
/* Begins to attach ENTRY's sites, or puts it off. */
void probed_background_attach(struct probed_files *files, struct probed_entry *entry);
/* Waits for no process that attaches or detaches. */
void probed_background_abandon(struct probed_files *files, struct probed_entry *entry);
/* Ends ENTRY's functions and begins to detach it. */
void probed_background_detach(struct probed_files *files, struct probed_entry *entry);
