/* SPDX-License-Identifier: Apache-2.0 */
/* Who may read: the server checks the owner of the client's socket, and the token. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/server/serve/peer.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "tests/unit/serve_fixture.h"

enum { OTHER_USER = 12345 };
static const uint64_t SOON_NS = 50000000;

static const char *const OPEN[] = { "GET /healthy", "GET /-/healthy", "GET /ready", "GET /-/ready",
	"GET /metrics" };
static const char *const CLOSED[] = { "GET /", "GET /status", "GET /api/profiles",
	"GET /api/latency", "GET /api/profiles/a", "GET /debug/pprof/", "GET /debug/pprof",
	"GET /debug/pprof/profile", "GET /debug/pprof/symbol", "POST /debug/pprof/symbol",
	"POST /-/reload", "GET /nothing" };

static int access_setup_other(void **state)
{
	struct serve_fixture *f;

	serve_setup(state);
	f = *state;
	f->client_uid = OTHER_USER;
	return 0;
}

/* Only root can open sockets for others. */
static void access_need_root(void)
{
	if (geteuid() != 0)
		skip();
}

static void test_other_users_read_health_and_metrics_only(void **state)
{
	struct serve_fixture *f = *state;

	access_need_root();
	serve_start(f, "127.0.0.1:0", NULL);
	for (size_t i = 0; i < ARRAY_SIZE(OPEN); i++)
		assert_int_equal(serve_ask(f, OPEN[i]), 200);
	for (size_t i = 0; i < ARRAY_SIZE(CLOSED); i++) {
		assert_int_equal(serve_ask(f, CLOSED[i]), 401);
		assert_true(serve_says(f, "WWW-Authenticate: Bearer"));
		assert_true(serve_says(f, "token"));
	}
	assert_int_equal(f->reloads, 0);
	assert_int_equal(f->seconds, 0);
}

static void test_token_opens_everything(void **state)
{
	struct serve_fixture *f = *state;
	/* anybody:secret */
	static const char basic[] = "Authorization: Basic YW55Ym9keTpzZWNyZXQ=\r\n";

	access_need_root();
	serve_start(f, "127.0.0.1:0", "secret");
	assert_int_equal(serve_ask(f, "GET /"), 401);
	assert_int_equal(serve_ask_with(f, "GET /", "Authorization: Bearer wrong1\r\n"), 401);
	assert_int_equal(serve_ask_with(f, "GET /", "Authorization: Bearer \r\n"), 401);
	assert_int_equal(serve_ask_with(f, "GET /", "Authorization: Bearer secret\r\n"), 200);
	assert_int_equal(serve_ask_with(f, "GET /", basic), 200);
	assert_int_equal(serve_ask_with(f, "POST /-/reload", basic), 200);
	assert_int_equal(f->reloads, 1);
}

/* A proxy may send the requests of several users over one connection. */
static void test_token_counts_for_its_request_only(void **state)
{
	static const char requests[] = "GET / HTTP/1.1\r\nHost: localhost\r\n"
				       "Authorization: Bearer secret\r\n\r\n"
				       "GET /status HTTP/1.1\r\nHost: localhost\r\n"
				       "Connection: close\r\n\r\n";
	struct serve_fixture *f = *state;
	autoclose int fd = -1;

	access_need_root();
	serve_start(f, "127.0.0.1:0", "secret");
	fd = serve_connect(f);
	assert_int_equal(serve_ask_on(f, fd, requests, strlen(requests)), 200);
	assert_true(serve_says(f, "HTTP/1.1 401"));
}

static void test_token_is_replaced(void **state)
{
	struct serve_fixture *f = *state;

	access_need_root();
	serve_start(f, "127.0.0.1:0", "old");
	serve_set_token(f->serve, "new");
	assert_int_equal(serve_ask_with(f, "GET /", "Authorization: Bearer old\r\n"), 401);
	assert_int_equal(serve_ask_with(f, "GET /", "Authorization: Bearer new\r\n"), 200);
	serve_set_token(f->serve, NULL);
	assert_int_equal(serve_ask_with(f, "GET /", "Authorization: Bearer new\r\n"), 401);
}

static void test_owner_needs_no_token(void **state)
{
	struct serve_fixture *f = *state;

	serve_start(f, "127.0.0.1:0", "secret");
	assert_int_equal(serve_ask(f, "GET /"), 200);
	assert_int_equal(serve_ask(f, "POST /-/reload"), 200);
	assert_int_equal(serve_ask(f, "GET /nothing"), 404);
}

/* A DNS rebinding attack: root's browser shows a page of another site. */
static void test_owner_under_another_host_name_needs_the_token(void **state)
{
	struct serve_fixture *f = *state;
	static const char plain[] = "GET / HTTP/1.1\r\nHost: evil.example\r\n"
				    "Connection: close\r\n\r\n";
	static const char with[] = "GET / HTTP/1.1\r\nHost: evil.example\r\n"
				   "Authorization: Bearer secret\r\nConnection: close\r\n\r\n";

	serve_start(f, ":0", "secret");
	assert_int_equal(serve_ask_raw(f, plain), 401);
	assert_int_equal(serve_ask_raw(f, with), 200);
	assert_int_equal(serve_ask(f, "GET /"), 200);
}

static int access_connect6(const struct serve_fixture *f, const char *address)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6,
		.sin6_port = htons((uint16_t)serve_port(f->serve)) };
	int fd = serve_socket(f, AF_INET6);

	assert_int_equal(inet_pton(AF_INET6, address, &in6.sin6_addr), 1);
	if (connect(fd, (struct sockaddr *)&in6, sizeof(in6))) {
		close(fd);
		return -1;
	}
	return fd;
}

static void test_addresses_of_both_families(void **state)
{
	static const char request[] =
		"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
	static const char *const addresses[] = { "::1", "::ffff:127.0.0.1", "::ffff:127.9.9.9" };
	struct serve_fixture *f = *state;

	access_need_root();
	serve_start(f, ":0", NULL);
	for (size_t i = 0; i < ARRAY_SIZE(addresses); i++) {
		for (uid_t uid = 0; uid <= OTHER_USER; uid += OTHER_USER) {
			autoclose int fd = -1;

			f->client_uid = uid;
			fd = access_connect6(f, addresses[i]);
			if (fd < 0)
				skip(); /* a kernel without IPv6 */
			assert_int_equal(
				serve_ask_on(f, fd, request, strlen(request)), uid ? 401 : 200);
		}
	}
}

/*
 * The kernel shows uid 0 for a socket that its program has closed: a request that was sent before
 * the close must not pass as root's.
 */
static void test_closed_client_has_no_identity(void **state)
{
	static const char request[] =
		"POST /-/reload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n";
	struct serve_fixture *f = *state;

	access_need_root();
	serve_start(f, "127.0.0.1:0", NULL);
	for (int i = 0; i < 3; i++) {
		int fd = serve_connect(f);

		assert_int_equal(write(fd, request, strlen(request)), (ssize_t)strlen(request));
		close(fd);
		/* The server serves its clients in order, so it has seen the closed one by now. */
		assert_int_equal(serve_ask(f, "GET /healthy"), 200);
	}
	assert_int_equal(f->reloads, 0);
}

static void test_client_that_has_shut_down_sending_is_known(void **state)
{
	static const char request[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
	struct serve_fixture *f = *state;
	autoclose int fd = -1;

	f->limits.idle_ns = SOON_NS; /* until the server closes */
	serve_start(f, "127.0.0.1:0", NULL);
	fd = serve_connect(f);
	assert_int_equal(write(fd, request, strlen(request)), (ssize_t)strlen(request));
	assert_int_equal(shutdown(fd, SHUT_WR), 0);
	assert_int_equal(serve_ask_on(f, fd, "", 0), 200);
}

static void test_socket_file_decides_by_its_permissions(void **state)
{
	struct serve_fixture *f = *state;
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	char directory[] = "/tmp/test-serve-XXXXXX", address[128];
	static const char request[] = "GET / HTTP/1.0\r\n\r\n";
	autoclose int fd = -1;
	struct stat st;
	uid_t uid;

	assert_non_null(mkdtemp(directory));
	snprintf(un.sun_path, sizeof(un.sun_path), "%s/s", directory);
	snprintf(address, sizeof(address), "unix:%s", un.sun_path);
	serve_start(f, address, "secret");
	assert_int_equal(stat(un.sun_path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0660);
	fd = serve_connect_unix(&un);
	assert_int_equal(peer_uid(fd, &uid), 0);
	assert_int_equal(uid, geteuid());
	assert_int_equal(serve_ask_on(f, fd, request, strlen(request)), 200);
	serve_destroy(take(f->serve));
	assert_int_equal(rmdir(directory), 0);
}

/* ---- the socket file beside the address ----------------------------------------------------- */

static void access_make_directory(char directory[], struct sockaddr_un *ret_un)
{
	assert_non_null(mkdtemp(directory));
	*ret_un = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(ret_un->sun_path, sizeof(ret_un->sun_path), "%s/run/s", directory);
}

static void access_remove_directory(const char *directory)
{
	char run[128];
	struct stat st;

	snprintf(run, sizeof(run), "%s/run", directory);
	assert_int_equal(stat(run, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0750);
	assert_int_equal(rmdir(run), 0); /* it is empty */
	assert_int_equal(rmdir(directory), 0);
}

static int access_ask_socket(struct serve_fixture *f, const struct sockaddr_un *un)
{
	/* Nobody can send a browser here: the host does not count. */
	static const char request[] =
		"GET /status HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
	autoclose int fd = serve_connect_unix(un);

	return serve_ask_on(f, fd, request, strlen(request));
}

static void test_a_socket_file_beside_the_address(void **state)
{
	char directory[] = "/tmp/test-serve-XXXXXX";
	struct serve_fixture *f = *state;
	struct sockaddr_un un;
	struct stat st;

	access_make_directory(directory, &un);
	serve_start(f, "127.0.0.1:0", "secret");
	assert_int_equal(serve_add_socket(f->serve, un.sun_path), 0);
	assert_int_equal(stat(un.sun_path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0660);
	assert_int_equal(access_ask_socket(f, &un), 200);
	assert_int_equal(serve_ask(f, "GET /status"), 200);
	assert_int_not_equal(serve_port(f->serve), 0);
	/* There is room for one. */
	assert_int_equal(serve_add_socket(f->serve, un.sun_path), -EBUSY);
	serve_destroy(take(f->serve));
	access_remove_directory(directory);
}

/* Those who could open it although they are not of the group do not get more than over TCP. */
static void test_the_peers_of_a_socket_file_are_known(void **state)
{
	char directory[] = "/tmp/test-serve-XXXXXX", run[128];
	struct serve_fixture *f = *state;
	struct sockaddr_un un;

	if (geteuid()) {
		print_message("# only root can be two users\n");
		return;
	}
	access_make_directory(directory, &un);
	snprintf(run, sizeof(run), "%s/run", directory);
	serve_start(f, "127.0.0.1:0", "secret");
	assert_int_equal(serve_add_socket(f->serve, un.sun_path), 0);
	assert_int_equal(chmod(directory, 0755) | chmod(run, 0755) | chmod(un.sun_path, 0666), 0);
	for (int i = 0; i < 4; i++) {
		bool of_group = i == 1 || i == 2; /* its own, another one beside it */
		gid_t groups[] = { 3, i == 2 ? getegid() : 4 };
		gid_t group = getegid();
		int fd;

		assert_int_equal(setgroups(ARRAY_SIZE(groups), groups), 0);
		assert_int_equal(setegid(i == 1 ? group : 12345), 0);
		assert_int_equal(seteuid(i == 3 ? 0 : 12345), 0);
		fd = serve_connect_unix(&un);
		assert_int_equal(seteuid(0), 0);
		assert_int_equal(setegid(group) | setgroups(0, NULL), 0);
		assert_int_equal(serve_ask_on(f, fd, "GET /status HTTP/1.0\r\n\r\n", 24),
			of_group || i == 3 ? 200 : 401);
		close(fd);
	}
	assert_int_equal(chmod(run, 0750), 0);
	serve_destroy(take(f->serve));
	access_remove_directory(directory);
}

static int access_ask_as_other(struct serve_fixture *f, const struct sockaddr_un *un)
{
	gid_t group = getegid();
	int fd, status;

	assert_int_equal(setgroups(0, NULL) | setegid(12345) | seteuid(12345), 0);
	fd = serve_connect_unix(un);
	assert_int_equal(seteuid(0) | setegid(group), 0);
	status = serve_ask_on(f, fd, "GET /status HTTP/1.0\r\n\r\n", 24);
	close(fd);
	return status;
}

/* What is right for one is not for the other. */
static void test_two_socket_files_are_told_apart(void **state)
{
	char directory[] = "/tmp/test-serve-XXXXXX", address[160], run[128];
	struct sockaddr_un un, given = { .sun_family = AF_UNIX };
	struct serve_fixture *f = *state;

	if (geteuid()) {
		print_message("# only root can be two users\n");
		return;
	}
	access_make_directory(directory, &un);
	snprintf(run, sizeof(run), "%s/run", directory);
	snprintf(given.sun_path, sizeof(given.sun_path), "%s/given", directory);
	snprintf(address, sizeof(address), "unix:%s", given.sun_path);
	serve_start(f, address, "secret");
	assert_int_equal(serve_add_socket(f->serve, un.sun_path), 0);
	assert_int_equal(chmod(directory, 0755) | chmod(run, 0755), 0);
	assert_int_equal(chmod(un.sun_path, 0666) | chmod(given.sun_path, 0666), 0);
	assert_int_equal(access_ask_as_other(f, &given), 200);
	assert_int_equal(access_ask_as_other(f, &un), 401);
	assert_int_equal(chmod(run, 0750), 0);
	serve_destroy(take(f->serve));
	access_remove_directory(directory);
}

static void test_a_socket_file_is_not_taken_from_another(void **state)
{
	char directory[] = "/tmp/test-serve-XXXXXX", run[128];
	struct serve_options options = { 0 };
	struct serve_fixture *f = *state;
	struct serve *second;
	struct sockaddr_un un;
	int stale;

	access_make_directory(directory, &un);
	snprintf(run, sizeof(run), "%s/run", directory);
	/* Left by a run that was killed. */
	assert_int_equal(mkdir(run, 0750), 0);
	stale = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(stale, (struct sockaddr *)&un, sizeof(un)), 0);
	close(stale);
	serve_start(f, "127.0.0.1:0", NULL);
	assert_int_equal(serve_add_socket(f->serve, un.sun_path), 0);
	options.loop = f->loop;
	assert_int_equal(serve_create(&options, &second), 0);
	assert_int_equal(serve_add_socket(second, un.sun_path), -EBUSY);
	serve_destroy(second);
	assert_int_equal(access_ask_socket(f, &un), 200);
	serve_destroy(take(f->serve));
	access_remove_directory(directory);
}

static void test_places_where_no_socket_file_can_be(void **state)
{
	char directory[] = "/tmp/test-serve-XXXXXX", path[256];
	struct serve_fixture *f = *state;

	assert_non_null(mkdtemp(directory));
	serve_start(f, "127.0.0.1:0", NULL);
	assert_int_equal(serve_add_socket(f->serve, "relative/s"), -EINVAL);
	assert_int_equal(serve_add_socket(f->serve, "/proc/nothing/s"), -ENOENT);
	snprintf(path, sizeof(path), "%s/%0120d", directory, 1);
	assert_int_equal(serve_add_socket(f->serve, path), -EINVAL);
	snprintf(path, sizeof(path), "%s/s", directory);
	assert_int_equal(chmod(directory, 0770), 0);
	assert_int_equal(serve_add_socket(f->serve, path), -EPERM);
	assert_int_equal(chmod(directory, 0700), 0);
	close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	assert_int_equal(serve_add_socket(f->serve, path), -EADDRINUSE);
	assert_int_equal(unlink(path), 0);
	/* A failure leaves nothing behind. */
	assert_int_equal(serve_add_socket(f->serve, path), 0);
	serve_destroy(take(f->serve));
	assert_int_equal(rmdir(directory), 0);
}

/* ---- peer.h --------------------------------------------------------------------------------- */

static void test_peer_of_other_sockets(void **state)
{
	autoclose int udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	autoclose int unconnected = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	autoclose int pipe_end = -1, other_end = -1;
	int ends[2];
	uid_t uid = 77;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	pipe_end = ends[0];
	other_end = ends[1];
	assert_int_equal(peer_uid(udp, &uid), -ENOTCONN);
	assert_int_equal(peer_uid(unconnected, &uid), -ENOTCONN);
	assert_int_equal(peer_uid(pipe_end, &uid), -ENOTSOCK);
	assert_int_equal(peer_uid(-1, &uid), -EBADF);
	assert_int_equal(uid, 77);
}

#define OTHER(name) cmocka_unit_test_setup_teardown(name, access_setup_other, serve_teardown)
#define OWNER(name) cmocka_unit_test_setup_teardown(name, serve_setup, serve_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		OTHER(test_other_users_read_health_and_metrics_only),
		OTHER(test_token_opens_everything),
		OTHER(test_token_counts_for_its_request_only),
		OTHER(test_token_is_replaced),
		OWNER(test_owner_needs_no_token),
		OWNER(test_owner_under_another_host_name_needs_the_token),
		OWNER(test_addresses_of_both_families),
		OTHER(test_closed_client_has_no_identity),
		OWNER(test_closed_client_has_no_identity),
		OWNER(test_client_that_has_shut_down_sending_is_known),
		OWNER(test_socket_file_decides_by_its_permissions),
		OWNER(test_a_socket_file_beside_the_address),
		OWNER(test_the_peers_of_a_socket_file_are_known),
		OWNER(test_two_socket_files_are_told_apart),
		OWNER(test_a_socket_file_is_not_taken_from_another),
		OWNER(test_places_where_no_socket_file_can_be),
		cmocka_unit_test(test_peer_of_other_sockets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
