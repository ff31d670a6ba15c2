/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * From events to trees: the calls of a goroutine or thread, from the entry of a root until it has
 * returned. A tree that stays open for long, or grows too large, is reported in parts: what has
 * happened so far, and later the rest, which begins with the calls that were still open. Events
 * come in time order. Calls whose return never came, lost events and calls that
 * did not fit are part of the tree, each where it happened. Memory is bounded. Knows functions and
 * places only by number. One thread.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "bpf/abi/trace.h"

enum trace_call_end {
	TRACE_CALL_OPEN, /* it had not returned when the tree ended */
	TRACE_CALL_RETURNED,
	TRACE_CALL_ABANDONED, /* it ended without a return */
	TRACE_CALL_UNKNOWN, /* abandoned, or its return was lost */
};

struct trace_call {
	uint64_t time_ns; /* of the entry, CLOCK_MONOTONIC */
	uint64_t duration_ns; /* unless RETURNED: until its end was noticed */
	uint32_t function;
	uint32_t level;
	uint32_t place; /* of the call, as the owner numbers it */
	uint32_t lost_before; /* events lost between the one before it and its entry */
	uint32_t lost_inside; /* likewise before its end */
	uint32_t left_out; /* calls below it that did not fit */
	/* In trace_tree.payloads, each with its size in front of it; 0 = none. */
	uint32_t payload, return_payload;
	uint8_t end; /* enum trace_call_end */
	bool shown; /* in an earlier part */
	bool interrupt; /* kernel: by an interrupt, on top of the call that it is below */
};

enum trace_tree_end {
	TRACE_TREE_RETURNED,
	TRACE_TREE_ABANDONED, /* the root did not return */
	TRACE_TREE_TASK_ENDED, /* the goroutine or thread ended */
	TRACE_TREE_PROCESS_ENDED,
	TRACE_TREE_CUT, /* the trace ended */
	TRACE_TREE_UNKNOWN, /* its end was lost: the task began another one */
	TRACE_TREE_OPEN, /* not the last part */
};

struct trace_tree {
	uint64_t id;
	uint64_t goid; /* 0 = a thread's */
	uint32_t pid, tid;
	struct abi_trace_task_key task;
	struct trace_call *calls; /* in the order of their entries */
	size_t count, capacity;
	uint8_t *payloads;
	size_t payload_bytes, payload_capacity;
	uint64_t ended_ns; /* of the last event */
	uint64_t lost; /* events */
	uint64_t left_out; /* calls that did not fit */
	uint64_t hidden; /* calls that were shorter than min_duration_ns */
	bool beginning_lost; /* the first event was not the root's entry */
	bool incomplete; /* BPF could not follow some calls */
	bool kernel; /* calls of kernel functions */
	enum trace_tree_end end;
	uint32_t part; /* from 0. Counts above are of this part alone */

	/* Private. */
	uint32_t *open; /* by level: 1 + index into `calls`; 0 = lost or left out */
	uint32_t levels;
	size_t open_capacity;
	uint32_t next_sequence;
	uint64_t reported_ns; /* when it was reported last, or began */
	bool has_news; /* since then */
	uint8_t last_ticks; /* its thread has ended, and this waits for its last calls; 0 = no */
	enum trace_tree_end exit_end;
};

struct trace_trees_options {
	size_t max_calls; /* in one tree */
	size_t max_bytes; /* of all trees; calls that do not fit are left out */
	uint64_t min_duration_ns; /* calls that return sooner are left out */
	uint64_t part_ns; /* so often trees that are open and have news are reported; 0 = never */
	/* A tree, or a part of it, is over. It is valid during the call. */
	void (*done)(void *context, const struct trace_tree *tree);
	void *context;
};

struct trace_trees {
	struct trace_trees_options options;
	struct map by_id; /* tree id → struct trace_tree */
	struct map by_task; /* hash of the task → likewise, the latest one */
	size_t bytes;
	uint64_t not_kept; /* events of trees for which there was no memory */
};

void trace_trees_init(struct trace_trees *trees, const struct trace_trees_options *options);
/* Frees all trees; those that are open are not reported. */
void trace_trees_deinit(struct trace_trees *trees);
/* PAYLOAD has EVENT->payload_bytes; PLACE is where an entry was called from. */
void trace_trees_event(struct trace_trees *trees, const struct abi_trace_event *event,
	const void *payload, uint32_t place);
/*
 * Thread TID of process PID has ended, the process if they are equal. Its calls in the kernel go on
 * for some time.
 */
void trace_trees_exit(struct trace_trees *trees, uint32_t pid, uint32_t tid);
/* Reports what has been open for long, and ends what waited. Call it about once a second. */
void trace_trees_tick(struct trace_trees *trees, uint64_t now_ns);
/* Ends all trees: the trace is over. */
void trace_trees_finish(struct trace_trees *trees);
/* The payload at PLACE of a tree, a field of struct trace_call. NULL = none. */
const void *trace_tree_payload(const struct trace_tree *tree, uint32_t place, size_t *ret_bytes);
