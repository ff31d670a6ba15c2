// SPDX-License-Identifier: Apache-2.0

// Without an assembly file, the compiler wants a body of each function.
