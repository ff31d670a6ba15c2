/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What libcurl is told about a store and about each of its requests. */

struct remote;
struct remote_options;
struct request;

/*
 * Creates REMOTE's easy handle with what OPTIONS say for all requests; also keeps the headers'
 * values as secrets. -ENOMEM, -EINVAL. remote_curl_close() must be called either way.
 */
int remote_curl_open(struct remote *remote, const struct remote_options *options);
void remote_curl_close(struct remote *remote);
/* Sets up the handle for REQUEST, whose body is remote->body or that of remote->call. -ENOMEM. */
int remote_curl_request(struct remote *remote, const struct request *request);
