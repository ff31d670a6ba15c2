/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One remote store, one payload and a misbehaving server, for tests of agent/server/export. */
#include "agent/server/export/remote/remote.h"
#include "tests/unit/fault_server.h"

struct remote_fixture {
	struct remotes *remotes;
	struct remote *remote;
	struct payload payload;
	struct remote_result result;
	int verdicts; /* verdicts received so far */
	struct fault_server *server;
	char address[64];
};

/* SCRIPT may be NULL: nobody listens at the address. */
void remote_fixture_init(
	struct remote_fixture *f, fault_script *script, void *context, const struct fault_tls *tls);
/* Makes the payload a real pprof; by default it is the text PROFILE. */
void remote_fixture_put_profile(struct remote_fixture *f);
void remote_fixture_deinit(struct remote_fixture *f);
/* Opens the store with OPTIONS plus the address and, unless set, a timeout of 10 s. */
void remote_fixture_open(struct remote_fixture *f, struct remote_options options);
/* Sends the payload and waits for the verdict. */
void remote_fixture_send(struct remote_fixture *f);
/* Sends the payload without waiting. */
void remote_fixture_begin(struct remote_fixture *f);
void remote_fixture_wait(struct remote_fixture *f);
