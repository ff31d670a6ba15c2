/* SPDX-License-Identifier: Apache-2.0 */
#include "base/host.h"

const struct host *host_current;
