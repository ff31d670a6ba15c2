/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shared by the daemon's files: daemon.c, windows.c, http.c, settings.c and others. */
#include "agent/sampler/seam/calls.h"
#include "agent/report/nameless.h"
#include "agent/report/report.h"
#include "agent/daemon/budget.h"
#include "agent/settings/config.h"
#include "agent/daemon/export.h"
#include "agent/daemon/pod_choices.h"
#include "agent/daemon/probes.h"
#include "agent/loop/loop.h"
#include "agent/loop/turn_stats.h"
#include "agent/server/merge/merge.h"
#include "agent/server/serve/serve.h"
#include "agent/server/metadata/metadata.h"
#include "agent/server/store/store.h"

enum { DAEMON_MAX_ON_DEMAND = 8 };

struct on_demand {
	struct daemon *daemon;
	struct serve_reply *reply; /* NULL = free */
	struct windows_tap *tap;
	unsigned int hz; /* at least that many samples a second; 0 = as usual */
	int timer;
};

enum { DAEMON_MAX_MERGES = 2 };

/* A merge of stored profiles for an HTTP client. */
struct daemon_merge {
	struct daemon *daemon;
	struct serve_reply *reply; /* NULL = free */
	struct merge *merge;
};

/* The settings, checked and converted; texts are borrowed from `config`. */
struct daemon_settings {
	uint64_t frequency_hz, window_ns;
	double cpu_share;
	double off_cpu_share; /* 0 = off-CPU time is not sampled */
	uint64_t store_bytes, store_age_ns;
	uint32_t without; /* enum mechanism values: --test-without */
	struct selection *selection; /* NULL = all processes */
	enum pod_annotations pod_annotations;
};

struct daemon {
	struct config config;
	struct daemon_settings settings;
	int argc;
	char **argv;
	struct loop *loop;
	struct turn_stats turns;
	struct sampler *sampler;
	struct store *store; /* NULL = no local store */
	struct daemon_export *export; /* NULL = no remote store */
	struct metadata *metadata; /* NULL = no container runtime is asked */
	struct pod_choices pod_choices;
	struct daemon_probes *probes;
	struct serve *serve; /* NULL = HTTP is off */
	const char *http_socket; /* path of its socket file; NULL = none */
	char *token; /* of the HTTP address; NULL only before it is made */
	char *cache_directory;
	struct budget budget;
	int window_timer, frequency_timer, budget_timer, watchdog_timer, pods_timer; /* -1 = none */
	int clock_fd; /* -1 = none */
	uint64_t started_ns, started_real_ns;
	uint64_t window_due_ns; /* end of the window, CLOCK_MONOTONIC */
	int window_error; /* errno of ending the last window; 0 = ended */
	uint64_t windows; /* sealed so far */
	uint64_t last_seal_ns; /* CPU time spent writing the last window */
	uint64_t lost_told; /* samples lost until then stand in the comments of stored profiles */
	int store_error; /* errno of storing the last window; 0 = stored */
	int store_removal_error; /* errno of removing old profiles, at the last trim; 0 = none */
	struct merge *store_merge; /* of old files of the store; NULL = none is under way */
	int store_merge_error; /* errno of the last one; 0 = done */
	uint64_t store_merges_cpu_ns;
	bool disk_full; /* storing the last window evicted old profiles */
	bool ready, stopping;
	bool hottest_reported;
	struct report_nameless *nameless; /* programs without names, at the last look */
	size_t nameless_count;
	uint64_t nameless_ns; /* of the last look, CLOCK_MONOTONIC; 0 = none yet */
	struct on_demand on_demand[DAEMON_MAX_ON_DEMAND];
	struct daemon_merge merges[DAEMON_MAX_MERGES];
};

/* daemon.c */
/* Starts the periodic look at the CPU budget, if there is one. */
int daemon_schedule_budget(struct daemon *d);

/* Says to the sampler which pods are profiled. CHANGED: the settings have. */
int daemon_choose_pods(struct daemon *d, bool changed);

/* settings.c */
int daemon_settings_read(
	const struct config *config, struct daemon_settings *ret_settings, char **ret_message);
/* *RET_TOKEN is NULL if no file is configured; free it with secret_free(). */
/*
 * Reads the settings again, reports to systemd and logs the result. On error nothing has changed.
 */
int daemon_reload(struct daemon *d, char **ret_message);

/* windows.c */
int daemon_start_windows(struct daemon *d);
/* Options for a report of all of WINDOW. */
struct report_options daemon_report_options(
	const struct daemon *d, const struct sealed_window *window);
/* Call after the length of windows has changed. */
void daemon_schedule_window(struct daemon *d);
/* Ends a window whenever wall time jumps. */
int daemon_watch_clock(struct daemon *d);
/* Sampler callback: memory is short, ends the window early. */
void daemon_full(void *context);
/* Applies the budget's frequency and starts a new window: a window has one period. */
void daemon_set_frequency(struct daemon *d);
/* The sampling frequency: what the budget allows, or more while a profile on demand wants more. */
uint64_t daemon_frequency(const struct daemon *d);
/* Whether it is a profile on demand that decides. */
bool daemon_is_hurried(const struct daemon *d);
void daemon_sealed(void *context, const struct sealed_window *window);
/* Removes profiles over the limits of the local store, if there is one. */
void daemon_trim_store(struct daemon *d);
/* Writes the last window, after sampling has stopped. */
void daemon_seal_last(struct daemon *d);

/* announce.c */
void daemon_announce(const struct daemon *d);
/* Logs the samples of the whole run, with those lost while it ended. */
void daemon_announce_end(const struct daemon *d);
/* Prints once, for the first window that is long enough. */
void daemon_announce_hottest(
	struct daemon *d, const struct sealed_window *window, const struct report_sources *sources);

/* http.c */
void daemon_http_handlers(struct daemon *d, struct serve_handlers *ret_handlers);
/* A line that says why the agent is not ready; NULL if it is. */
const char *daemon_not_ready(const struct daemon *d);
void daemon_on_demand_deinit(struct daemon *d);
uint64_t daemon_resident_bytes(void);
unsigned int daemon_open_fds(void); /* 0 if unknown */
/* CPU time of the BPF program; 0 if the kernel does not account it. */
uint64_t daemon_bpf_ns(const struct daemon *d);
uint64_t daemon_clients_cpu_ns(const struct daemon *d); /* what HTTP clients have cost */
/*
 * CPU time for the CPU budget: ours, without what clients have cost, and that of BPF without
 * measuring functions.
 */
uint64_t daemon_sampling_cpu_ns(const struct daemon *d);
/* What measuring functions has cost: BPF, and the traps in the measured programs. */
uint64_t daemon_probes_cpu_ns(const struct daemon *d);
uint64_t daemon_probe_traps_ns(const struct daemon *d);
/* Gives index builds their half of the CPU budget. */
void daemon_share_budget(struct daemon *d);
/* Gives measuring functions what sampling leaves of it. */
void daemon_share_with_probes(struct daemon *d);

/* nameless_programs.c */
/* Looks which programs have no names, if the last look was a while ago. */
void daemon_nameless_look(struct daemon *d, const struct report_sources *sources);
void daemon_nameless_deinit(struct daemon *d);
void daemon_nameless_write(const struct daemon *d, struct json *j);

/* merges.c */
/* serve_handlers.merge_begin; CONTEXT is the daemon. */
int daemon_begin_merge(void *context, struct serve_reply *reply, const struct serve_merge *wanted);
/* The client of REPLY is gone. */
void daemon_cancel_merge(struct daemon *d, const struct serve_reply *reply);
void daemon_merges_deinit(struct daemon *d);

/* store_merges.c */
/* Starts to merge old files of the store, if there are any and nothing is being merged. */
void daemon_merge_store(struct daemon *d);
void daemon_store_merges_deinit(struct daemon *d);

/* status.c */
int daemon_write_status(void *context, struct buffer *out);
/* Samples that reached no profile, for whatever reason. */
uint64_t daemon_samples_lost(const struct daemon *d);
/* Writes a member. Characters unsafe on a terminal become `?`; cut at 4 KiB. */
void daemon_json_text(struct json *j, const char *key, const char *text);
