/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * MD5 (RFC 1321). Only because Prometheus' `hashmod` is defined by it and two agents must agree on
 * the shard of a target: no protection against anybody.
 */
#include <stddef.h>
#include <stdint.h>

enum { MD5_BYTES = 16 };

void md5(const void *bytes, size_t size, uint8_t ret_digest[MD5_BYTES]);
