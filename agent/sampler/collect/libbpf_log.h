/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * From here on libbpf's own messages go to our log, if its level is debug, and nowhere otherwise.
 * Without this call libbpf writes to standard error what has failed, even where that was a
 * question.
 */
void libbpf_log_init(void);
