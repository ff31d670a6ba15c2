/* SPDX-License-Identifier: Apache-2.0 */
/* Listen addresses, and the parameters of requests. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/server/serve/address.h"
#include "agent/server/serve/parameters.h"
#include "base/cleanup.h"
#include "tests/unit/refused_call.h"
#include "tests/unit/serve_fixture.h"

/* ---- addresses ------------------------------------------------------------------------------ */

static void test_addresses(void **state)
{
	static const char *const bad[] = { "", ":", "7071", "127.0.0.1",
		"127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:7x", "::1:7071", "[::1]7071",
		"[::1:7071", "[127.0.0.1]:1", "host.example:7071", "unix:", "unix:relative",
		"1.2.3:80" };
	struct address a;
	char path[256] = "unix:/";

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(address_parse(bad[i], &a), -EINVAL);
	memset(path + 6, 'a', sizeof(path) - 7);
	assert_int_equal(address_parse(path, &a), -EINVAL);
	assert_int_equal(address_parse("127.0.0.1:7071", &a), 0);
	assert_true(a.loopback && !a.any);
	assert_int_equal(address_parse("localhost:0", &a), 0);
	assert_true(a.loopback);
	assert_int_equal(address_parse("[::1]:7071", &a), 0);
	assert_true(a.loopback);
	assert_int_equal(address_parse(":7071", &a), 0);
	assert_true(a.any && !a.loopback);
	assert_int_equal(address_parse("10.0.0.1:7071", &a), 0);
	assert_false(a.loopback);
	assert_int_equal(address_parse("unix:/run/fathom.sock", &a), 0);
	assert_false(a.loopback);
}

static void test_everywhere_takes_other_host_names(void **state)
{
	struct serve_fixture *f = *state;

	serve_start(f, ":0", NULL);
	assert_int_equal(serve_ask_raw(f, "GET /healthy HTTP/1.1\r\nHost: node7.example\r\n"
					  "Connection: close\r\n\r\n"),
		200);
}

static void test_address_in_use(void **state)
{
	struct serve_fixture *f = *state;
	struct serve_options options = { .loop = f->loop };
	struct serve *other;
	char address[32];

	snprintf(address, sizeof(address), "127.0.0.1:%u", serve_port(f->serve));
	options.address = address;
	assert_int_equal(serve_create(&options, &other), -EADDRINUSE);
	options.address = "nonsense";
	assert_int_equal(serve_create(&options, &other), -EINVAL);
}

static int listen_there(void *context)
{
	struct address *a = context;
	int fd, err = address_listen(a, &fd);

	return err ? err : fd;
}

static int port_of(int fd, sa_family_t *ret_family)
{
	struct sockaddr_storage bound;
	socklen_t size = sizeof(bound);

	assert_int_equal(getsockname(fd, (struct sockaddr *)&bound, &size), 0);
	*ret_family = bound.ss_family;
	/* The port has the same offset in both types. */
	return ntohs(((const struct sockaddr_in *)&bound)->sin_port);
}

/* The wildcard address falls back to IPv4; an explicit IPv6 address fails. */
static void test_kernel_without_ipv6(void **state)
{
	const struct refused_call no_ipv6 = {
		.number = SYS_socket, .error = EAFNOSUPPORT, .first = AF_INET6
	};
	const struct refused_call no_sockets = {
		.number = SYS_socket, .error = EMFILE, .first = AF_INET6
	};
	sa_family_t family;
	struct address a;
	char text[16];
	int fd;

	(void)state;
	assert_int_equal(address_parse(":0", &a), 0);
	fd = with_refused_call(&no_ipv6, listen_there, &a);
	assert_true(fd >= 0);
	snprintf(text, sizeof(text), ":%d", port_of(fd, &family));
	assert_int_equal(family, AF_INET);
	/* The IPv4 socket has the same port. */
	assert_int_equal(address_parse(text, &a), 0);
	assert_int_equal(with_refused_call(&no_ipv6, listen_there, &a), -EADDRINUSE);
	assert_int_equal(close(fd), 0);
	assert_int_equal(address_parse(":0", &a), 0);
	assert_int_equal(with_refused_call(&no_sockets, listen_there, &a), -EMFILE);
	assert_int_equal(address_parse("[::]:0", &a), 0);
	assert_int_equal(with_refused_call(&no_ipv6, listen_there, &a), -EAFNOSUPPORT);
}

static void test_unix_socket(void **state)
{
	struct serve_fixture *f = *state;
	char directory[] = "/tmp/test-serve-XXXXXX";
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	struct serve_options options = { .loop = f->loop };
	char address[128];
	struct serve *other;
	struct stat st;
	int stale, fd;

	assert_non_null(mkdtemp(directory));
	snprintf(un.sun_path, sizeof(un.sun_path), "%s/s", directory);
	snprintf(address, sizeof(address), "unix:%s", un.sun_path);
	options.address = address;
	/* A file that is no socket stays. */
	fd = open(un.sun_path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(serve_create(&options, &other), -EADDRINUSE);
	assert_int_equal(unlink(un.sun_path), 0);
	/* A socket that nobody listens on is replaced. */
	stale = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(stale, (struct sockaddr *)&un, sizeof(un)), 0);
	close(stale);
	serve_start(f, address, NULL);
	assert_int_equal(stat(un.sun_path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0660);
	assert_int_equal(serve_create(&options, &other), -EADDRINUSE);
	fd = serve_connect_unix(&un);
	assert_int_equal(serve_ask_on(f, fd, "GET /healthy HTTP/1.0\r\n\r\n", 25), 200);
	close(fd);
	serve_destroy(take(f->serve));
	assert_int_equal(stat(un.sun_path, &st), -1);
	assert_int_equal(rmdir(directory), 0);
}

/* ---- what clients write --------------------------------------------------------------------- */

static void test_numbers(void **state)
{
	uint64_t n = 7;

	(void)state;
	assert_false(parameters_number("", 10, &n));
	assert_false(parameters_number("11", 10, &n));
	assert_false(parameters_number("+1", 10, &n));
	assert_false(parameters_number(" 1", 10, &n));
	assert_false(parameters_number("1 ", 10, &n));
	assert_false(parameters_number("18446744073709551616", UINT64_MAX, &n));
	assert_int_equal(n, 7);
	assert_true(parameters_number("18446744073709551615", UINT64_MAX, &n));
	assert_true(n == UINT64_MAX);
	assert_true(parameters_number("0010", 10, &n));
	assert_int_equal(n, 10);
	assert_false(parameters_number("9", 5, &n));
}

static void test_credentials(void **state)
{
	static const char *const bad[] = { "", "Bearer", "Bearer ", "Bearer secre",
		"Bearer secret ", "Bearer secrets", "secret", "Digest secret", "Basic",
		"Basic c2VjcmV0" /* no colon */, "Basic eDpzZWNyZXR6" /* x:secretz */,
		"Basic eDpzZWNyZXQ=x", "Basic e~" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(parameters_authorized(bad[i], "secret"));
	assert_true(parameters_authorized("bearer secret", "secret"));
	assert_true(parameters_authorized("Bearer  secret", "secret"));
	assert_true(parameters_authorized("Basic eDpzZWNyZXQ=", "secret"));
	assert_true(parameters_authorized("Basic eDpzZWNyZXQ", "secret"));
}

#define STARTED(name) cmocka_unit_test_setup_teardown(name, serve_setup_started, serve_teardown)
#define UNSTARTED(name) cmocka_unit_test_setup_teardown(name, serve_setup, serve_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_addresses),
		UNSTARTED(test_everywhere_takes_other_host_names),
		STARTED(test_address_in_use),
		cmocka_unit_test(test_kernel_without_ipv6),
		UNSTARTED(test_unix_socket),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_credentials),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
