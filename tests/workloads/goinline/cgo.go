// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !netonly
// +build cgo,!netonly

package main

/*
static int cadd(int a, int b)
{
	return a + b;
}

extern int called_by_c(int);

static int call_back(int a)
{
	return called_by_c(a) + 1;
}
*/
import "C"

import "net"

//go:noinline
func cgoCaller(n int) int {
	n += int(C.cadd(C.int(n), 2))
	addresses, _ := net.LookupHost("localhost")
	return n + inner(len(addresses)) + int(C.call_back(C.int(n)))
}

func init() { calls = append(calls, cgoCaller) }
