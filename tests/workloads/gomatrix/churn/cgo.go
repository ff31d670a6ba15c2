// SPDX-License-Identifier: Apache-2.0

//go:build cgo
// +build cgo

package churn

/*
void churn_c_work(int times);
void churn_c_calls_go(int depth);
*/
import "C"

// foreign works in C, then in Go that C calls, which calls C that calls Go. There the goroutine's stack
// grows, and others run, which may get the old one: the only stack that C code knows of.
func foreign(x uint64) {
	mix(x)
	C.churn_c_work(2000)
	C.churn_c_calls_go(1)
}

//export churnBack
func churnBack(depth C.int) {
	mix(uint64(depth))
	if depth > 0 {
		C.churn_c_calls_go(depth - 1)
	}
	deep(40)
	handOff(uint64(depth))
	garbage(uint64(depth))
	mix(uint64(depth))
}
