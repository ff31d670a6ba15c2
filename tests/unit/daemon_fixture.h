/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * An agent with a settings file, a directory of its own and the fake sampler in place of the real
 * one. Include in one file of a test program.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/sampler/process/selection.h"
#include "agent/daemon/daemon_internal.h"
#include "agent/daemon/token.h"
#include "agent/settings/log_options.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/secret_file.h"
#include "tests/unit/fake_sampler.h"
#include "tests/unit/remove_tree.h"

struct daemon_fixture {
	struct sampler sampler;
	struct daemon daemon;
	char directory[64], config_path[96], option[128];
	char *argv[3];
	char log[16 << 10]; /* of the last daemon_fixture_logged() */
};

/* Writes the settings file, which the next reload reads. */
static inline void daemon_fixture_write(const struct daemon_fixture *f, const char *text)
{
	assert_int_equal(io_replace_file(AT_FDCWD, f->config_path, text, strlen(text), 0600), 0);
}

/* Of an agent that has no settings yet. */
static inline void daemon_fixture_make_directory(struct daemon_fixture *f)
{
	snprintf(f->directory, sizeof(f->directory), "/tmp/fathom-daemon-XXXXXX");
	assert_non_null(mkdtemp(f->directory));
	snprintf(f->config_path, sizeof(f->config_path), "%s/fathom.yaml", f->directory);
	snprintf(f->option, sizeof(f->option), "--config-path=%s", f->config_path);
	f->argv[0] = (char *)"agent";
	f->argv[1] = f->option;
}

/* Makes an agent with the settings TEXT; its windows hold what the test puts into the world. */
static inline void daemon_fixture_make(struct daemon_fixture *f, const char *text)
{
	struct daemon *d = &f->daemon;
	autofree char *message = NULL;
	void *world;

	memset(f, 0, sizeof(*f));
	assert_int_equal(report_setup(&world), 0);
	f->sampler.world = world;
	daemon_fixture_make_directory(f);
	daemon_fixture_write(f, text);
	d->argc = 2;
	d->argv = f->argv;
	d->sampler = &f->sampler;
	d->window_timer = d->frequency_timer = d->budget_timer = d->clock_fd = -1;
	assert_int_equal(config_parse(&d->config, IN_AGENT, d->argc, d->argv), 0);
	assert_int_equal(config_load(&d->config, f->config_path, &message), 0);
	assert_int_equal(daemon_settings_read(&d->config, &d->settings, &message), 0);
	assert_int_equal(log_options(&d->config), 0);
	assert_int_equal(token_get(&d->config, f->directory, &d->token, &message), 0);
	assert_int_equal(
		daemon_probes_create(&d->config, &f->sampler.metrics, &d->probes, &message), 0);
	budget_init(&d->budget, d->settings.cpu_share, d->settings.frequency_hz);
	d->cache_directory = f->directory;
	d->started_ns = clock_monotonic_ns();
	d->started_real_ns = clock_real_ns();
	f->sampler.window = (struct sealed_window){
		.number = 1,
		.began_ns = d->started_ns,
		.began_real_ns = d->started_real_ns,
		.period = 52631578,
		.types = sample_types_of(false, false),
		.profile = f->sampler.world->profile,
		.processes = &f->sampler.world->described,
		.anon_module = processes_anon_module(f->sampler.world->processes),
	};
	assert_int_equal(loop_create(&d->loop), 0);
	assert_int_equal(daemon_start_windows(d), 0);
}

static inline void daemon_fixture_unmake(struct daemon_fixture *f)
{
	struct daemon *d = &f->daemon;
	void *world = f->sampler.world;

	daemon_on_demand_deinit(d);
	daemon_nameless_deinit(d);
	daemon_merges_deinit(d);
	serve_destroy(d->serve);
	daemon_export_destroy(d->export, 0);
	daemon_probes_destroy(d->probes);
	store_destroy(d->store);
	selection_destroy(d->settings.selection);
	pod_choices_deinit(&d->pod_choices);
	container_choices_destroy(f->sampler.choices);
	loop_destroy(d->loop);
	secret_free(&d->token);
	config_deinit(&d->config);
	report_teardown(&world);
	remove_tree(f->directory);
}

/* Runs FN and returns what it wrote to stderr. */
static inline const char *daemon_fixture_logged(
	struct daemon_fixture *f, void (*fn)(struct daemon_fixture *f))
{
	autoclose int fd = memfd_create("log", MFD_CLOEXEC);
	autoclose int before = dup(STDERR_FILENO);
	ssize_t size;

	assert_true(fd >= 0 && before >= 0);
	assert_int_equal(dup2(fd, STDERR_FILENO), STDERR_FILENO);
	fn(f);
	assert_int_equal(dup2(before, STDERR_FILENO), STDERR_FILENO);
	size = pread(fd, f->log, sizeof(f->log) - 1, 0);
	f->log[MAX(size, 0)] = 0;
	return f->log;
}

/* cmocka's setup and teardown of an agent without settings; *STATE is a struct daemon_fixture. */
static inline int daemon_fixture_setup(void **state)
{
	struct daemon_fixture *f = malloc(sizeof(*f));

	*state = f;
	daemon_fixture_make(f, "");
	return 0;
}

static inline int daemon_fixture_teardown(void **state)
{
	daemon_fixture_unmake(*state);
	free(*state);
	return 0;
}
