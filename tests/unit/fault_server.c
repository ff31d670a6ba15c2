/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/fault_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

struct fault_server {
	int listener, stop;
	int port;
	pthread_t thread;
	fault_script *script;
	void *context;
	SSL_CTX *tls;
	bool h2;
	_Atomic unsigned int connections;
};

static int listen_somewhere(int *ret_port)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, 16) ||
		getsockname(fd, (struct sockaddr *)&address, &size))
		abort();
	*ret_port = ntohs(address.sin_port);
	return fd;
}

int fault_free_port(void)
{
	int port, fd = listen_somewhere(&port);

	close(fd);
	return port;
}

static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_size,
	const unsigned char *in, unsigned int in_size, void *context)
{
	static const unsigned char both[] = "\x02h2\x08http/1.1", old[] = "\x08http/1.1";
	const struct fault_server *s = context;

	(void)ssl;
	if (SSL_select_next_proto((unsigned char **)out, out_size, s->h2 ? both : old,
		    s->h2 ? sizeof(both) - 1 : sizeof(old) - 1, in,
		    in_size) != OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_NOACK;
	return SSL_TLSEXT_ERR_OK;
}

static SSL_CTX *make_tls(struct fault_server *s, const struct fault_tls *tls)
{
	SSL_CTX *context = SSL_CTX_new(TLS_server_method());

	if (!context || SSL_CTX_use_certificate_chain_file(context, tls->certificate) != 1 ||
		SSL_CTX_use_PrivateKey_file(context, tls->key, SSL_FILETYPE_PEM) != 1)
		abort();
	s->h2 = tls->h2;
	SSL_CTX_set_alpn_select_cb(context, choose_protocol, s);
	if (!tls->client_ca)
		return context;
	if (SSL_CTX_load_verify_locations(context, tls->client_ca, NULL) != 1)
		abort();
	SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	return context;
}

/* Drains the socket: if closed with unread data, the peer gets a reset instead of our alert. */
static void drain(int fd)
{
	char bytes[1024];

	shutdown(fd, SHUT_WR);
	while (read(fd, bytes, sizeof(bytes)) > 0)
		;
}

static void serve_one(struct fault_server *s, int fd)
{
	struct fault_connection c = {
		.fd = fd, .context = s->context, .number = atomic_fetch_add(&s->connections, 1) + 1
	};

	if (s->tls) {
		c.ssl = SSL_new(s->tls);
		if (!c.ssl || SSL_set_fd(c.ssl, fd) != 1)
			abort();
		c.broken = SSL_accept(c.ssl) != 1;
	}
	if (!c.broken)
		s->script(&c);
	else
		drain(fd);
	if (c.ssl && !c.broken)
		SSL_shutdown(c.ssl);
	SSL_free(c.ssl);
	if (c.fd >= 0)
		close(c.fd);
}

static void *run(void *context)
{
	struct fault_server *s = context;

	for (;;) {
		struct pollfd fds[] = { { s->listener, POLLIN, 0 }, { s->stop, POLLIN, 0 } };
		int fd;

		if (poll(fds, 2, -1) < 0)
			continue;
		if (fds[1].revents)
			return NULL;
		fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC);
		if (fd >= 0)
			serve_one(s, fd);
	}
}

struct fault_server *fault_server_start(
	fault_script *script, void *context, const struct fault_tls *tls)
{
	struct fault_server *s = calloc(1, sizeof(*s));

	if (!s)
		abort();
	signal(SIGPIPE, SIG_IGN);
	s->script = script;
	s->context = context;
	s->listener = listen_somewhere(&s->port);
	s->stop = eventfd(0, EFD_CLOEXEC);
	if (tls)
		s->tls = make_tls(s, tls);
	if (s->stop < 0 || pthread_create(&s->thread, NULL, run, s))
		abort();
	return s;
}

void fault_server_stop(struct fault_server *s)
{
	uint64_t one = 1;

	if (!s)
		return;
	if (write(s->stop, &one, sizeof(one)) != sizeof(one))
		abort();
	pthread_join(s->thread, NULL);
	close(s->listener);
	close(s->stop);
	SSL_CTX_free(s->tls);
	free(s);
}

int fault_server_port(const struct fault_server *s)
{
	return s->port;
}

unsigned int fault_server_connections(const struct fault_server *s)
{
	return atomic_load(&s->connections);
}

/* ---- for scripts --------------------------------------------------------------------------- */
bool fault_read(struct fault_connection *c, void *bytes, size_t size)
{
	uint8_t *at = bytes;

	while (size && !c->broken) {
		ssize_t got = c->ssl ? SSL_read(c->ssl, at, (int)size) : read(c->fd, at, size);

		if (got <= 0) {
			c->broken = true;
		} else {
			at += got;
			size -= (size_t)got;
		}
	}
	return !c->broken;
}

bool fault_write(struct fault_connection *c, const void *bytes, size_t size)
{
	const uint8_t *at = bytes;

	while (size && !c->broken) {
		ssize_t put = c->ssl ? SSL_write(c->ssl, at, (int)size)
				     : send(c->fd, at, size, MSG_NOSIGNAL);

		if (put <= 0) {
			c->broken = true;
		} else {
			at += put;
			size -= (size_t)put;
		}
	}
	return !c->broken;
}

bool fault_text(struct fault_connection *c, const char *text)
{
	return fault_write(c, text, strlen(text));
}

static bool read_body(struct fault_connection *c, struct fault_request *request, size_t size)
{
	if (size > FAULT_REQUEST_BYTES)
		return false;
	request->body = malloc(size + 1);
	if (!request->body)
		abort();
	request->body_size = size;
	return fault_read(c, request->body, size);
}

bool fault_read_request(struct fault_connection *c, struct fault_request *request)
{
	const char *length;
	size_t used = 0;

	*request = (struct fault_request){ 0 };
	while (used + 1 < sizeof(request->head)) {
		if (!fault_read(c, request->head + used, 1))
			return false;
		used++;
		if (used >= 4 && !memcmp(request->head + used - 4, "\r\n\r\n", 4))
			break;
	}
	length = strcasestr(request->head, "\r\ncontent-length:");
	return read_body(c, request, length ? strtoul(length + 17, NULL, 10) : 0);
}

void fault_reset(struct fault_connection *c)
{
	struct linger now = { .l_onoff = 1, .l_linger = 0 };

	setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(c->fd);
	c->fd = -1;
	c->broken = true;
}

void fault_wait_for_end(struct fault_connection *c)
{
	char byte;

	while (fault_read(c, &byte, 1))
		;
}

/* ---- HTTP/2 (RFC 9113, section 4.1: nine bytes before each frame) -----------------------------
 */
enum { H2_DATA = 0, H2_HEADERS = 1, H2_SETTINGS = 4, H2_PING = 6, H2_WINDOW_UPDATE = 8 };
enum { H2_ACK = 1, H2_END_STREAM = 1, H2_END_HEADERS = 4 };

bool fault_h2_frame(struct fault_connection *c, uint8_t type, uint8_t flags, uint32_t stream,
	const void *payload, size_t size)
{
	uint8_t head[9] = { (uint8_t)(size >> 16), (uint8_t)(size >> 8), (uint8_t)size, type, flags,
		(uint8_t)(stream >> 24), (uint8_t)(stream >> 16), (uint8_t)(stream >> 8),
		(uint8_t)stream };

	return fault_write(c, head, sizeof(head)) && fault_write(c, payload, size);
}

static bool keep_data(struct fault_request *request, const uint8_t *bytes, size_t size)
{
	if (request->body_size + size > FAULT_REQUEST_BYTES)
		return false;
	request->body = realloc(request->body, request->body_size + size + 1);
	if (!request->body)
		abort();
	memcpy(request->body + request->body_size, bytes, size);
	request->body_size += size;
	return true;
}

/* RFC 9113, 6.9: lets the client send SIZE bytes more, on the connection and the stream. */
static bool open_window(struct fault_connection *c, uint32_t stream, size_t size)
{
	const uint8_t more[4] = { (uint8_t)(size >> 24), (uint8_t)(size >> 16),
		(uint8_t)(size >> 8), (uint8_t)size };

	return !size || (fault_h2_frame(c, H2_WINDOW_UPDATE, 0, 0, more, sizeof(more)) &&
				fault_h2_frame(c, H2_WINDOW_UPDATE, 0, stream, more, sizeof(more)));
}

static uint32_t stream_of(const uint8_t head[9])
{
	return (uint32_t)head[5] << 24 | (uint32_t)head[6] << 16 | (uint32_t)head[7] << 8 | head[8];
}

/* Reads the preface and frames, up to LIMIT bytes or the end of the request's body. */
static bool read_frames(struct fault_connection *c, struct fault_request *request, size_t limit,
	uint32_t *ret_stream)
{
	uint8_t head[24], payload[16384];

	*request = (struct fault_request){ 0 };
	if (!c->h2_begun && (!fault_read(c, head, 24) || memcmp(head, "PRI * HTTP/2.0", 14) ||
				    !fault_h2_frame(c, H2_SETTINGS, 0, 0, NULL, 0)))
		return false;
	c->h2_begun = true;
	for (;;) {
		size_t size;

		if (!fault_read(c, head, 9))
			return false;
		size = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
		if (size > sizeof(payload) || !fault_read(c, payload, size))
			return false;
		if (head[3] == H2_SETTINGS && !(head[4] & H2_ACK) &&
			!fault_h2_frame(c, H2_SETTINGS, H2_ACK, 0, NULL, 0))
			return false;
		if (head[3] == H2_DATA && !keep_data(request, payload, size))
			return false;
		if (request->body_size >= limit)
			break;
		if ((head[3] == H2_DATA || head[3] == H2_HEADERS) && (head[4] & H2_END_STREAM))
			break;
		if (head[3] == H2_DATA && limit == SIZE_MAX &&
			!open_window(c, stream_of(head), size))
			return false;
	}
	*ret_stream = stream_of(head);
	return true;
}

bool fault_h2_read_request(
	struct fault_connection *c, struct fault_request *request, uint32_t *ret_stream)
{
	return read_frames(c, request, SIZE_MAX, ret_stream);
}

/* RFC 9113, 6.9.2: the initial window. */
enum { H2_FIRST_WINDOW = 65535 };

bool fault_h2_ping(struct fault_connection *c)
{
	static const uint8_t data[8];
	uint8_t head[9], payload[16384];
	size_t size;

	if (!fault_h2_frame(c, H2_PING, 0, 0, data, sizeof(data)))
		return false;
	do {
		if (!fault_read(c, head, 9))
			return false;
		size = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
		if (size > sizeof(payload) || !fault_read(c, payload, size))
			return false;
	} while (head[3] != H2_PING || !(head[4] & H2_ACK));
	return true;
}

bool fault_h2_read_window(struct fault_connection *c, uint32_t *ret_stream)
{
	struct fault_request request;
	bool read = read_frames(c, &request, H2_FIRST_WINDOW, ret_stream);

	free(request.body);
	return read;
}

/* HPACK (RFC 7541, 6.2.2): literals without indexing, no Huffman. */
bool fault_h2_headers(struct fault_connection *c, uint32_t stream,
	const struct fault_header *headers, size_t count, bool end)
{
	uint8_t block[4096];
	size_t used = 0;

	for (size_t i = 0; i < count; i++) {
		size_t name = strlen(headers[i].name), value = strlen(headers[i].value);

		if (name > 126 || value > 126 || used + name + value + 3 > sizeof(block))
			abort();
		block[used++] = 0;
		block[used++] = (uint8_t)name;
		memcpy(block + used, headers[i].name, name);
		used += name;
		block[used++] = (uint8_t)value;
		memcpy(block + used, headers[i].value, value);
		used += value;
	}
	return fault_h2_frame(
		c, H2_HEADERS, H2_END_HEADERS | (end ? H2_END_STREAM : 0), stream, block, used);
}
