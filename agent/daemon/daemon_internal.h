/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the daemon's files share: daemon.c, windows.c, http.c, settings.c and the rest. */
#include "agent/sampler/sampler.h"
#include "agent/daemon/budget.h"
#include "agent/settings/config.h"
#include "agent/daemon/export.h"
#include "agent/loop/loop.h"
#include "agent/server/serve/serve.h"
#include "agent/server/store/store.h"

enum { DAEMON_MAX_ON_DEMAND = 8 };

struct on_demand {
	struct daemon *daemon;
	struct serve_reply *reply; /* NULL = free */
	struct windows_tap *tap;
	int timer;
};

/* The settings as numbers and checked; borrowed texts live in `config`. */
struct daemon_settings {
	uint64_t frequency_hz, window_ns;
	double cpu_share;
	double off_cpu_share; /* 0 = waits are not sampled */
	uint64_t store_bytes, store_age_ns;
	uint32_t without; /* enum mechanism values: --test-without */
	struct selection *selection; /* NULL = all processes */
};

struct daemon {
	struct config config;
	struct daemon_settings settings;
	int argc;
	char **argv;
	struct loop *loop;
	struct sampler *sampler;
	struct store *store; /* NULL = nowhere */
	struct daemon_export *export; /* NULL = nothing is sent */
	struct serve *serve; /* NULL = nowhere */
	char *token; /* NULL = none */
	char *cache_directory;
	struct budget budget;
	int window_timer, frequency_timer, budget_timer, watchdog_timer; /* -1 = none */
	int clock_fd; /* -1 = none */
	uint64_t started_ns, started_real_ns;
	uint64_t window_due_ns; /* when it should end, monotonic */
	int window_error; /* why the last one could not be ended; 0 = it was */
	uint64_t windows; /* sealed so far */
	uint64_t last_seal_ns; /* CPU time that writing the last one took */
	int store_error; /* of the last window; 0 = stored */
	int store_removal_error; /* of old profiles, at the last look; 0 = none */
	bool disk_full; /* the last window cost old profiles */
	bool ready, stopping;
	bool hottest_told;
	struct on_demand on_demand[DAEMON_MAX_ON_DEMAND];
};

/* daemon.c */
/* Looks at the CPU budget now and then, if there is one. */
int daemon_schedule_budget(struct daemon *d);

/* settings.c */
int daemon_settings_read(
	const struct config *config, struct daemon_settings *ret_settings, char **ret_message);
/* *RET_TOKEN is NULL where no file is named; to be freed by secret_free(). */
int daemon_read_token(const struct config *config, char **ret_token, char **ret_message);
/* Tells systemd, and the log when nothing was changed. */
int daemon_reload(struct daemon *d, char **ret_message);

/* windows.c */
int daemon_start_windows(struct daemon *d);
/* After the windows' length has changed. */
void daemon_schedule_window(struct daemon *d);
/* Windows end where wall time jumps. */
int daemon_watch_clock(struct daemon *d);
/* The window ends early: the agent asks for it. */
void daemon_full(void *context);
/* The budget's samples a second and CPU, in a window of their own: one window has one period. */
void daemon_set_frequency(struct daemon *d);
void daemon_sealed(void *context, const struct sealed_window *window);
/* Removes what is over the limits of the local store, if there is one. */
void daemon_trim_store(struct daemon *d);
/* The last window, at the end: sampling has stopped. */
void daemon_seal_last(struct daemon *d);

/* announce.c */
void daemon_announce(const struct daemon *d);
/* Once, of the first window that is long enough. */
void daemon_announce_hottest(
	struct daemon *d, const struct sealed_window *window, const struct report_sources *sources);

/* http.c */
void daemon_http_handlers(struct daemon *d, struct serve_handlers *ret_handlers);
/* A line that says why, NULL = it is ready. */
const char *daemon_not_ready(const struct daemon *d);
void daemon_on_demand_deinit(struct daemon *d);
uint64_t daemon_resident_bytes(void);
unsigned int daemon_open_fds(void); /* 0: not known */
/* CPU time of the BPF program; 0 where the kernel does not count it. */
uint64_t daemon_bpf_ns(const struct daemon *d);

/* status.c */
int daemon_write_status(void *context, struct buffer *out);
/* A member; what a terminal would not take is replaced by ?. The first 4 KiB. */
void daemon_json_text(struct json *j, const char *key, const char *text);
