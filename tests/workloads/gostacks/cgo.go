// SPDX-License-Identifier: Apache-2.0

//go:build cgo
// +build cgo

package main

/*
#cgo LDFLAGS: -lpthread
void c_outer(void);
void c_call_go(int depth);
void c_start_thread(void);
*/
import "C"

import (
	"fmt"
	"gostacks/leaf"
)

var insideTold bool

// stepC has c_leaf, c_inner and c_outer below it, on the thread's stack.
//
//go:noinline
func stepC(k *kind) {
	k.tell()
	C.c_outer()
}

// stepBack goes to C and back to Go twice.
//
//go:noinline
func stepBack(k *kind) {
	k.tell()
	C.c_call_go(1)
}

// tellInside prints the Go functions that it was called by, with C's left out, as the runtime does.
//
//go:noinline
func tellInside() {
	insideTold = true
	functions := callers()
	printed.Lock()
	fmt.Println("inside", functions)
	printed.Unlock()
}

//go:noinline
func burn() {
	leaf.Spin()
	garbage = append(garbage[:0], make([]byte, 4096)...)
}

var garbage []byte

//export goBack
func goBack(depth C.int) {
	if depth > 0 {
		C.c_call_go(depth - 1)
		return
	}
	if !insideTold {
		tellInside()
	}
	for i := 0; i < 100; i++ {
		burn()
	}
}

//export goFromThread
func goFromThread() {
	for i := 0; i < 100; i++ {
		leaf.Spin()
	}
}

// stepThread leaves the work to a thread of C's.
//
//go:noinline
func stepThread(k *kind) {
	k.tell()
	C.c_start_thread()
	select {}
}

var cgoKinds = []*kind{
	{name: "c", step: stepC},
	{name: "back", step: stepBack},
	{name: "thread", step: stepThread},
}
