/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A test server that misbehaves on request: it listens on a free loopback port and runs a script
 * for each connection, one at a time, in its own thread.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ssl_st;

enum { FAULT_REQUEST_BYTES = 8 << 20 };

struct fault_connection {
	int fd;
	struct ssl_st *ssl; /* NULL = plain text */
	void *context;
	unsigned int number; /* number of this connection, from 1 */
	bool h2_begun; /* the preface was received */
	bool broken; /* the peer closed the connection */
};

typedef void fault_script(struct fault_connection *c);

struct fault_tls {
	const char *certificate, *key; /* PEM files */
	const char *client_ca; /* CA of required client certificates; NULL = none required */
	bool h2; /* ALPN offers h2 */
};

struct fault_server;

/* TLS may be NULL: plain text. */
struct fault_server *fault_server_start(
	fault_script *script, void *context, const struct fault_tls *tls);
/* Stops the server after the running script has ended. */
void fault_server_stop(struct fault_server *s);
int fault_server_port(const struct fault_server *s);
unsigned int fault_server_connections(const struct fault_server *s);

/* Returns a loopback port on which nobody listens. */
int fault_free_port(void);

/* ---- for scripts --------------------------------------------------------------------------- */
struct fault_request {
	char head[8192]; /* up to the empty line, NUL-terminated */
	uint8_t *body; /* owned by the caller */
	size_t body_size;
};

bool fault_read(struct fault_connection *c, void *bytes, size_t size);
bool fault_write(struct fault_connection *c, const void *bytes, size_t size);
bool fault_text(struct fault_connection *c, const char *text);
/* Reads an HTTP/1.1 request with its body. */
bool fault_read_request(struct fault_connection *c, struct fault_request *request);
/* Closes the connection with a reset. */
void fault_reset(struct fault_connection *c);
/* Waits until the peer closes. */
void fault_wait_for_end(struct fault_connection *c);

/* ---- HTTP/2, as little as a gRPC client needs ------------------------------------------------ */
struct fault_header {
	const char *name, *value; /* at most 126 bytes each */
};

/* Reads the preface and one request, whose head stays empty. *RET_STREAM is the stream's number. */
bool fault_h2_read_request(
	struct fault_connection *c, struct fault_request *request, uint32_t *ret_stream);
/* Sends a PING and waits for the answer: the client has then read everything before it. */
bool fault_h2_ping(struct fault_connection *c);
/* Reads as much of a large request as the client sends without a window update. */
bool fault_h2_read_window(struct fault_connection *c, uint32_t *ret_stream);
/* Sends a HEADERS frame; END also ends the stream. Names that start with ':' come first. */
bool fault_h2_headers(struct fault_connection *c, uint32_t stream,
	const struct fault_header *headers, size_t count, bool end);
bool fault_h2_frame(struct fault_connection *c, uint8_t type, uint8_t flags, uint32_t stream,
	const void *payload, size_t size);
