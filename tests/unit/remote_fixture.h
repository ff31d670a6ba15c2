/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One remote store, one payload and a server that misbehaves, for the tests of agent/server/export.
 */
#include "agent/server/export/remote/remote.h"
#include "tests/unit/fault_server.h"

struct remote_fixture {
	struct remotes *remotes;
	struct remote *remote;
	struct payload payload;
	struct remote_result result;
	int verdicts; /* handed out so far */
	struct fault_server *server;
	char address[64];
};

/* SCRIPT NULL: no server, and nobody at the address. */
void remote_fixture_init(
	struct remote_fixture *f, fault_script *script, void *context, const struct fault_tls *tls);
/* Makes the payload a real pprof; it is the text PROFILE else. */
void remote_fixture_put_profile(struct remote_fixture *f);
void remote_fixture_deinit(struct remote_fixture *f);
/* Address and, where none is given, a timeout of 10 s are added to OPTIONS. */
void remote_fixture_open(struct remote_fixture *f, struct remote_options options);
/* Sends and waits for the verdict. */
void remote_fixture_send(struct remote_fixture *f);
/* The same, without waiting. */
void remote_fixture_begin(struct remote_fixture *f);
void remote_fixture_wait(struct remote_fixture *f);
