/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a sealed window says about the processes of its samples, by generation: copies, made when
 * the window was sealed, that refer to nothing of the sampler. All of them live in the table's
 * memory.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/module_id.h"

enum {
	PROCESS_COMM_BYTES = 16,
	/* `user-UID/`, two IDs of 64 hex digits with a slash between, NUL */
	CONTAINER_ID_BYTES = 5 + 10 + 1 + 64 + 1 + 64 + 1,
	POD_UID_BYTES = 36 + 1, /* an UUID */
};

struct process_facts {
	uint32_t number; /* of the generation, as in samples */
	uint32_t pid;
	uint64_t start_ticks; /* its start in /proc/PID/stat; 0 = not read */
	char comm[PROCESS_COMM_BYTES + 1]; /* of the main thread; any bytes */
	char container_id[CONTAINER_ID_BYTES]; /* as process/container_id.h says; "" = none */
	char pod_uid[POD_UID_BYTES]; /* of its Kubernetes pod, by its control group; "" = not told
				      */
	const char *program_path; /* by which it was started; "" = not known; any bytes */
	uint32_t program; /* number of the program's module; 0 = not known */
	struct build_id program_build_id; /* size 0 = none, or not known */
	bool kernel_thread;
	bool ended; /* before the window was sealed */
};

struct window_processes {
	uint64_t began_ns; /* of the window, CLOCK_MONOTONIC */
	struct map by_number; /* generation → struct process_facts */
	struct arena memory;
};

void window_processes_init(struct window_processes *w);
void window_processes_deinit(struct window_processes *w);
/* Copies FACTS; a generation is added once. Returns -ENOMEM, or -E2BIG over the limit. */
int window_processes_add(struct window_processes *w, const struct process_facts *facts);
/* NULL if there is nothing about generation NUMBER: it was not known, or memory was short. */
const struct process_facts *window_processes_find(
	const struct window_processes *w, uint32_t number);
