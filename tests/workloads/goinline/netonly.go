// SPDX-License-Identifier: Apache-2.0

//go:build netonly
// +build netonly

package main

import "net"

// The resolver is C code that the Go linker itself can link.
//
//go:noinline
func netCaller(n int) int {
	addresses, _ := net.LookupHost("localhost")
	return n + inner(len(addresses))
}

func init() { calls = append(calls, netCaller) }
