// SPDX-License-Identifier: Apache-2.0

//go:build cgo
// +build cgo

package main

/*
#include <stdint.h>

void calledBack(int n);

static __attribute__((noinline)) uint64_t crosses(int n)
{
	if (n)
		calledBack(n);
	__asm__ volatile("" : "+r"(n));
	return n;
}
*/
import "C"

var crossesTruth, calledBackTruth *truth

// calledBack goes back into C: Go's and C's calls alternate on two stacks.
//
//export calledBack
func calledBack(n C.int) {
	began := now()
	crosses(n - 1)
	calledBackTruth.saw(began)
}

func crosses(n C.int) { C.crosses(n) }

func init() {
	const depth = 5
	crossesTruth = form("crosses")
	calledBackTruth = form("main.calledBack")
	forms = append(forms, func(n int) {
		if n%4 != 0 {
			return
		}
		crossesTruth.timedCalls(depth+1, func() {
			calledBackTruth.timedCalls(depth, func() { crosses(depth) })
		})
	})
}
