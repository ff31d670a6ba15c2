// SPDX-License-Identifier: Apache-2.0

// Gowaits has goroutines that mostly wait, each in its own way, all but one locked to their threads:
//
//	gowaits
//
// It prints `goroutine NAME GOID` of each, and `waits NAME REASON` as the runtime's own traceback
// says it, then `ready`, and runs until it is killed.
package main

import (
	"bytes"
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

const pause = 5 * time.Millisecond

var (
	started sync.WaitGroup
	told    sync.Mutex
	names   = map[string]string{} // by goid
	header  = regexp.MustCompile(`(?m)^goroutine (\d+) \[([^,\]]+)`)
)

func tell(name string) {
	var text [64]byte
	id := string(bytes.Fields(text[:runtime.Stack(text[:], false)])[1])
	told.Lock()
	names[id] = name
	fmt.Println("goroutine", name, id)
	told.Unlock()
	started.Done()
}

// start runs wait again and again on a thread of its own, if it is locked.
func start(name string, locked bool, wait func()) {
	started.Add(1)
	go func() {
		if locked {
			runtime.LockOSThread()
		}
		tell(name)
		for {
			wait()
		}
	}()
}

// feed sends to a channel after each pause.
func feed() chan bool {
	c := make(chan bool)
	go func() {
		for {
			time.Sleep(pause)
			c <- true
		}
	}()
	return c
}

// busy is a mutex that somebody else holds most of the time.
func busy() *sync.Mutex {
	m := new(sync.Mutex)
	go func() {
		for {
			m.Lock()
			time.Sleep(pause)
			m.Unlock()
			runtime.Gosched()
		}
	}()
	return m
}

// reasons are what the tracebacks of goroutines say while they wait, by name.
func reasons() map[string]string {
	found := map[string]string{}
	text := make([]byte, 1<<20)
	for i := 0; i < 100; i++ {
		time.Sleep(time.Millisecond)
		for _, m := range header.FindAllSubmatch(text[:runtime.Stack(text, true)], -1) {
			name, reason := names[string(m[1])], string(m[2])
			if name != "" && !strings.HasPrefix(reason, "run") && reason != "syscall" {
				found[name] = reason
			}
		}
	}
	return found
}

func main() {
	received, selected, freely, mutex := feed(), feed(), feed(), busy()
	never := make(chan bool)
	start("receive", true, func() { <-received })
	start("select", true, func() {
		select {
		case <-selected:
		case <-never:
		}
	})
	start("sleep", true, func() { time.Sleep(pause) })
	start("lock", true, func() {
		mutex.Lock()
		mutex.Unlock()
	})
	// The reason of its only wait stays in the goroutine.
	once, waited := feed(), false
	start("call", true, func() {
		if !waited {
			<-once
			waited = true
		}
		call := syscall.NsecToTimespec(int64(pause))
		syscall.Nanosleep(&call, nil)
	})
	start("free", false, func() { <-freely })
	started.Wait()
	for name, reason := range reasons() {
		fmt.Println("waits", name, strings.ReplaceAll(reason, " ", "_"))
	}
	fmt.Println("ready")
	select {}
}
