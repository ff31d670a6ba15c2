/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Repeated kill -9 of a process that sends profiles to a slow server: before an answer, right after
 * one, or while it accepts profiles. The processes are this program, run again as `life DIRECTORY
 * PORT FIRST COUNT`; they report through a pipe what the spool has acknowledged. All of that must
 * arrive, in order; only the profile in flight at a kill may arrive twice, on the first try after
 * it.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/server/export/exporter.h"
#include "base/cleanup.h"
#include "tests/unit/fault_server.h"
#include "tests/unit/spool_fixture.h"

enum {
	LIVES = 12,
	PUTS = 20, /* of a life */
	NUMBERS = LIVES * (PUTS + 2),
	MAX_REQUESTS = 2 * NUMBERS,
	SIZE = 500,
};

enum event_kind { ACKNOWLEDGED = 1, REPEATED };

struct event {
	uint32_t kind, number;
};

/* ---- a life --------------------------------------------------------------------------------- */

static void tell(enum event_kind kind, uint64_t number)
{
	struct event e = { kind, (uint32_t)number };

	if (write(STDOUT_FILENO, &e, sizeof(e)) != sizeof(e))
		_exit(2);
}

static struct exporter_target_figures figures_of(struct exporter *e)
{
	const struct timespec pause = { .tv_nsec = 200000 };
	struct exporter_figures f = { 0 };

	for (;;) {
		exporter_figures(e, &f);
		if (f.target_count)
			return f.targets[0];
		nanosleep(&pause, NULL);
	}
}

/* How many payloads are in the spool, or were sent in this life. */
static uint64_t taken_in(struct exporter *e)
{
	struct exporter_target_figures f = figures_of(e);

	return f.queue.pending + f.queue.sent_payloads;
}

static void put(struct exporter *e, uint64_t number)
{
	const struct timespec pause = { .tv_nsec = 200000 };
	uint64_t before = taken_in(e);
	struct payload p;

	spool_fixture_payload(number, SIZE, &p);
	if (labels_set(&p.labels, "service_name", "shop"))
		_exit(5);
	exporter_submit(e, &p);
	while (taken_in(e) == before)
		nanosleep(&pause, NULL);
	tell(ACKNOWLEDGED, number);
}

static void drain(struct exporter *e)
{
	const struct timespec pause = { .tv_nsec = 1000000 };

	while (figures_of(e).queue.pending)
		nanosleep(&pause, NULL);
	tell(REPEATED, figures_of(e).queue.repeated);
}

/* Submits COUNT payloads from number FIRST on and waits to be killed; if COUNT is 0, sends the
 * rest. */
static int life(char **arguments)
{
	struct metrics metrics = { 0 };
	uint64_t first = strtoull(arguments[2], NULL, 10), count = strtoull(arguments[3], NULL, 10);
	char address[64];
	struct remote_options remote = {
		.type = REMOTE_PYROSCOPE, .name = "pyroscope", .address = address
	};
	struct exporter_options options = {
		.spool_directory = arguments[0],
		.spool_limit_bytes = 64 << 20,
		.remotes = &remote,
		.remote_count = 1,
		.metrics = &metrics,
	};
	autofree char *message = NULL;
	struct exporter *e;

	snprintf(address, sizeof(address), "http://127.0.0.1:%s", arguments[1]);
	if (exporter_create(&options, &e, &message))
		return 3;
	for (uint64_t i = 0; i < count; i++)
		put(e, first + i);
	while (count)
		pause();
	drain(e);
	exporter_destroy(e, 0);
	return 0;
}

/* ---- the server ----------------------------------------------------------------------------- */

enum moment { BEFORE_AN_ANSWER, AFTER_AN_ANSWER, WHEN_TAKEN_IN, NEVER };

struct ledger {
	pthread_mutex_t lock; /* protects the fields up to the blank line */
	pthread_cond_t changed;
	uint32_t received[MAX_REQUESTS], connection[MAX_REQUESTS];
	size_t count;
	enum moment moment; /* of this life's death */
	uint32_t requests, requests_wanted; /* of this life */
	bool due;
	uint32_t deaths;

	bool acknowledged[NUMBERS];
	uint32_t first; /* number that the last life began with */
	uint32_t highest, repeated;
};

/* The value of the label `number`: a string follows its name in the message. */
static uint32_t number_of(const struct fault_request *r)
{
	static const char name[] = "number\x12";
	const uint8_t *found = memmem(r->body, r->body_size, name, sizeof(name) - 1);

	assert_non_null(found);
	return (uint32_t)strtoul((const char *)found + sizeof(name), NULL, 10);
}

static bool on_request(struct ledger *l, uint32_t connection, uint32_t number)
{
	bool answers = true;

	pthread_mutex_lock(&l->lock);
	assert_true(l->count < MAX_REQUESTS);
	l->connection[l->count] = connection;
	l->received[l->count++] = number;
	l->requests++;
	if (l->moment == BEFORE_AN_ANSWER && l->requests == l->requests_wanted) {
		const uint32_t deaths = l->deaths;

		l->due = true;
		pthread_cond_broadcast(&l->changed);
		while (l->deaths == deaths)
			pthread_cond_wait(&l->changed, &l->lock);
		answers = false;
	}
	pthread_mutex_unlock(&l->lock);
	return answers;
}

static void after_answer(struct ledger *l)
{
	pthread_mutex_lock(&l->lock);
	l->due = l->due || (l->moment == AFTER_AN_ANSWER && l->requests >= l->requests_wanted);
	pthread_cond_broadcast(&l->changed);
	pthread_mutex_unlock(&l->lock);
}

static void serve(struct fault_connection *c)
{
	const struct timespec slow = { .tv_nsec = 3000000 };
	struct fault_request request;

	while (fault_read_request(c, &request)) {
		bool answers = on_request(c->context, c->number, number_of(&request));

		free(request.body);
		if (!answers)
			return;
		nanosleep(&slow, NULL);
		fault_text(c, "HTTP/1.1 200 OK\r\nContent-Type: application/proto\r\n"
			      "Content-Length: 0\r\n\r\n");
		after_answer(c->context);
	}
}

/* ---- lives and deaths ----------------------------------------------------------------------- */

/* It must not outlive a test that was killed. */
static void die_with(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(6);
}

static pid_t begin_life(
	const char *directory, int port, uint32_t first, uint32_t count, int *ret_fd)
{
	char port_text[16], first_text[16], count_text[16];
	int fds[2];
	pid_t parent = getpid(), pid;

	snprintf(port_text, sizeof(port_text), "%d", port);
	snprintf(first_text, sizeof(first_text), "%u", first);
	snprintf(count_text, sizeof(count_text), "%u", count);
	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		die_with(parent);
		dup2(fds[1], STDOUT_FILENO);
		close(fds[0]);
		close(fds[1]);
		execl("/proc/self/exe", "life", directory, port_text, first_text, count_text, NULL);
		_exit(4);
	}
	close(fds[1]);
	*ret_fd = fds[0];
	return pid;
}

/* False at the end of the pipe. */
static bool take_down(struct ledger *l, int fd)
{
	struct event e;

	if (read(fd, &e, sizeof(e)) != sizeof(e))
		return false;
	if (e.kind == REPEATED) {
		l->repeated = e.number;
		return true;
	}
	assert_true(e.number < NUMBERS);
	l->acknowledged[e.number] = true;
	l->highest = e.number;
	return true;
}

static void wait_until_due(struct ledger *l)
{
	pthread_mutex_lock(&l->lock);
	while (!l->due)
		pthread_cond_wait(&l->changed, &l->lock);
	pthread_mutex_unlock(&l->lock);
}

static void set_moment(struct ledger *l, enum moment moment, uint32_t requests)
{
	pthread_mutex_lock(&l->lock);
	l->moment = moment;
	l->requests_wanted = requests;
	l->requests = 0;
	l->due = false;
	pthread_mutex_unlock(&l->lock);
}

static void count_death(struct ledger *l)
{
	pthread_mutex_lock(&l->lock);
	l->deaths++;
	pthread_cond_broadcast(&l->changed);
	pthread_mutex_unlock(&l->lock);
}

static void live_and_die(
	struct ledger *l, const char *directory, struct fault_server *server, enum moment moment)
{
	uint32_t wanted = 1 + (uint32_t)rand() % 6;
	int fd, status;
	pid_t pid;

	set_moment(l, moment, wanted);
	/*
	 * The number of a payload that was not acknowledged is not used again, not even the first
	 * of a life.
	 */
	l->first = MAX(l->first, l->highest) + 2;
	pid = begin_life(directory, fault_server_port(server), l->first, PUTS, &fd);
	if (moment == WHEN_TAKEN_IN) {
		for (uint32_t i = 0; i < wanted; i++)
			assert_true(take_down(l, fd));
	} else {
		wait_until_due(l);
	}
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	count_death(l);
	while (take_down(l, fd))
		;
	close(fd);
}

static void live_to_the_end(struct ledger *l, const char *directory, struct fault_server *server)
{
	int fd, status;
	pid_t pid;

	set_moment(l, NEVER, 0);
	pid = begin_life(directory, fault_server_port(server), 0, 0, &fd);
	while (take_down(l, fd))
		;
	close(fd);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
}

/* Returns how many arrived twice. */
static uint32_t check_order(const struct ledger *l)
{
	uint32_t twice = 0;

	for (size_t i = 1; i < l->count; i++) {
		if (l->received[i] < l->received[i - 1])
			fail_msg("%u came after %u", l->received[i], l->received[i - 1]);
		if (l->received[i] > l->received[i - 1])
			continue;
		twice++;
		if (l->connection[i] == l->connection[i - 1])
			fail_msg("%u came twice from one process", l->received[i]);
	}
	return twice;
}

static void check_all_came(const struct ledger *l)
{
	bool came[NUMBERS] = { false };

	for (size_t i = 0; i < l->count; i++) {
		assert_true(l->received[i] < NUMBERS);
		came[l->received[i]] = true;
	}
	for (uint32_t n = 0; n < NUMBERS; n++) {
		if (l->acknowledged[n] && !came[n])
			fail_msg("%u was acknowledged and is lost", n);
	}
}

static void acknowledged_payloads_arrive(void **state)
{
	static struct ledger l = { .lock = PTHREAD_MUTEX_INITIALIZER,
		.changed = PTHREAD_COND_INITIALIZER };
	struct fault_server *server = fault_server_start(serve, &l, NULL);
	struct spool_fixture f;
	uint32_t twice;

	(void)state;
	srand(spool_fixture_seed());
	spool_fixture_init(&f);
	for (int i = 0; i < LIVES - 1; i++)
		live_and_die(&l, f.directory, server, (enum moment)(i % NEVER));
	live_and_die(&l, f.directory, server, BEFORE_AN_ANSWER);
	live_to_the_end(&l, f.directory, server);
	fault_server_stop(server);
	spool_fixture_deinit(&f);
	twice = check_order(&l);
	check_all_came(&l);
	/* Each kill before an answer is certain to cause one. */
	assert_in_range(twice, (LIVES - 1) / NEVER + 1, LIVES);
	assert_int_equal(l.repeated, 1);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(acknowledged_payloads_arrive) };

	if (argc == 5 && !strcmp(argv[0], "life"))
		return life(argv + 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
