/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads libmicrohttpd when the first server is created. Linking it directly would load GnuTLS and
 * eight more libraries into every process of this program: 2 ms of CPU per start (3.7 instead of
 * 1.6 for `fathom --version`; each sandboxed child, which reads untrusted files, is a start, too).
 *
 * The functions here have the names of libmicrohttpd's and forward to them. None may be called
 * before microhttpd_load() has succeeded.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "agent/server/serve/serve_internal.h"

/* The soname of the library that the program was compiled with; see the Makefile. */
static const char library_name[] = FATHOM_MICROHTTPD_LIBRARY;
_Static_assert(sizeof(library_name) > 1, "libmicrohttpd.so was not found");

const char microhttpd_missing[] = "libmicrohttpd (" FATHOM_MICROHTTPD_LIBRARY ") cannot be loaded";

/* clang-format off */
#define FORWARDED(FUNCTION)                                                                        \
	FUNCTION(enum MHD_Result, MHD_run, (struct MHD_Daemon *daemon), (daemon))                  \
	FUNCTION(enum MHD_Result, MHD_get_timeout,                                                 \
		(struct MHD_Daemon *daemon, MHD_UNSIGNED_LONG_LONG *timeout), (daemon, timeout))   \
	FUNCTION(void, MHD_stop_daemon, (struct MHD_Daemon *daemon), (daemon))                     \
	FUNCTION(enum MHD_Result, MHD_add_connection,                                              \
		(struct MHD_Daemon *daemon, MHD_socket fd, const struct sockaddr *address,         \
			socklen_t length),                                                         \
		(daemon, fd, address, length))                                                     \
	FUNCTION(void, MHD_suspend_connection, (struct MHD_Connection *connection), (connection))  \
	FUNCTION(void, MHD_resume_connection, (struct MHD_Connection *connection), (connection))   \
	FUNCTION(const char *, MHD_lookup_connection_value,                                        \
		(struct MHD_Connection *connection, enum MHD_ValueKind kind, const char *key),     \
		(connection, kind, key))                                                           \
	FUNCTION(struct MHD_Response *, MHD_create_response_from_buffer,                           \
		(size_t size, void *buffer, enum MHD_ResponseMemoryMode mode),                     \
		(size, buffer, mode))                                                              \
	FUNCTION(struct MHD_Response *, MHD_create_response_from_buffer_with_free_callback_cls,    \
		(size_t size, void *buffer, MHD_ContentReaderFreeCallback release, void *context), \
		(size, buffer, release, context))                                                  \
	FUNCTION(struct MHD_Response *, MHD_create_response_from_fd64, (uint64_t size, int fd),    \
		(size, fd))                                                                        \
	FUNCTION(enum MHD_Result, MHD_add_response_header,                                         \
		(struct MHD_Response *response, const char *name, const char *value),              \
		(response, name, value))                                                           \
	FUNCTION(enum MHD_Result, MHD_queue_response,                                              \
		(struct MHD_Connection *connection, unsigned int status,                           \
			struct MHD_Response *response),                                            \
		(connection, status, response))                                                    \
	FUNCTION(void, MHD_destroy_response, (struct MHD_Response *response), (response))
/* clang-format on */

#define DECLARE(type, name, parameters, arguments) typeof(name) *name;
#define RESOLVE(type, name, parameters, arguments) all = resolve(#name, &real.name) && all;
#define FORWARD(type, name, parameters, arguments) \
	type name parameters                       \
	{                                          \
		return real.name arguments;        \
	}

static struct {
	FORWARDED(DECLARE)
	typeof(MHD_start_daemon_va) *MHD_start_daemon_va;
	typeof(MHD_get_daemon_info) *MHD_get_daemon_info;
	typeof(MHD_get_connection_info) *MHD_get_connection_info;
} real;

/* Sets *FUNCTION, a pointer to one. The dynamic linker searches the loaded library after us. */
static bool resolve(const char *name, void *function)
{
	void *found = dlsym(RTLD_NEXT, name);

	memcpy(function, &found, sizeof(found));
	return found;
}

int microhttpd_load(void)
{
	bool all = dlopen(library_name, RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE);

	FORWARDED(RESOLVE)
	all = resolve("MHD_start_daemon_va", &real.MHD_start_daemon_va) && all;
	all = resolve("MHD_get_daemon_info", &real.MHD_get_daemon_info) && all;
	all = resolve("MHD_get_connection_info", &real.MHD_get_connection_info) && all;
	return all ? 0 : -ELIBACC;
}

FORWARDED(FORWARD)

struct MHD_Daemon *MHD_start_daemon(unsigned int flags, uint16_t port,
	MHD_AcceptPolicyCallback accepts, void *accepts_context, MHD_AccessHandlerCallback handler,
	void *handler_context, ...)
{
	struct MHD_Daemon *daemon;
	va_list options;

	va_start(options, handler_context);
	daemon = real.MHD_start_daemon_va(
		flags, port, accepts, accepts_context, handler, handler_context, options);
	va_end(options);
	return daemon;
}

/* None of the facts that are asked for takes a further argument. */
const union MHD_DaemonInfo *MHD_get_daemon_info(
	struct MHD_Daemon *daemon, enum MHD_DaemonInfoType type, ...)
{
	return real.MHD_get_daemon_info(daemon, type);
}

const union MHD_ConnectionInfo *MHD_get_connection_info(
	struct MHD_Connection *connection, enum MHD_ConnectionInfoType type, ...)
{
	return real.MHD_get_connection_info(connection, type);
}
