// SPDX-License-Identifier: Apache-2.0

// Goinline says of itself what each of its addresses is: the runtime's own answer, for a
// symbolizer to be compared with.
//
//	goinline COUNT SEED
//
// prints a line for each of COUNT random bytes of executable code that the runtime knows:
//
//	ADDRESS \t KIND \t FUNCTION \t FILE:LINE [\t FUNCTION \t FILE:LINE ...]
//
// with the file's own (ELF) address and frames innermost first, as runtime.CallersFrames has them,
// inlined calls included; KIND is "random". Bytes that it meets and that are no Go function's have
// KIND "foreign" and no frames. Then come the "stack" lines: the stacks that the program really had
// while it ran through its inlined functions (runtime.Callers).
package main

import (
	"bufio"
	"debug/elf"
	"fmt"
	"math/rand"
	"os"
	"runtime"
	"sort"
	"strconv"
	"strings"

	"goinline/asm"
	"goinline/expand"
)

var (
	out   = bufio.NewWriterSize(os.Stdout, 1<<20)
	bias  uintptr
	sink  int
	seen  = map[uintptr]string{}
	calls []func(int) int // filled in by the files of this package
)

// record remembers the chains of the stack above it.
//
//go:noinline
func record(n int) int {
	var pcs [128]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	var pc, entry uintptr
	var chain []string
	for {
		frame, more := frames.Next()
		if frame.Entry != entry || !more {
			if entry != 0 && len(chain) > 0 {
				seen[pc] = strings.Join(chain, "\t")
			}
			pc, entry, chain = frame.PC, frame.Entry, nil
		}
		chain = append(chain, text(frame))
		if frame.Func != nil {
			seen[pc] = strings.Join(chain, "\t")
			entry, chain = 0, nil
		}
		if !more {
			return n + 1
		}
	}
}

func text(frame runtime.Frame) string {
	return frame.Function + "\t" + frame.File + ":" + strconv.Itoa(frame.Line)
}

// A chain of inlined calls, with several calls of the same function in one.
func inner(n int) int  { return record(n) * 3 }
func middle(n int) int { return inner(n) + inner(n+1) }
func outer(n int) int {
	n = middle(n)
	n += middle(n) * 2
	return n
}

//go:noinline
func chainCaller(n int) int {
	for i := 0; i < 2; i++ {
		n += outer(n)
	}
	return n
}

// Methods by value, reached through a pointer and an interface: wrappers.
type shape interface{ area(n int) int }
type square struct{ side int }
type named struct{ *square }

func (s square) area(n int) int { return record(s.side*s.side + n) }

//go:noinline
func wrapperCaller(n int) int {
	shapes := []shape{square{n}, &square{n + 1}, named{&square{n}}, &named{&square{n}}}
	for _, s := range shapes {
		n += s.area(n)
	}
	bound := shapes[n&1].area
	return bound(n)
}

//go:noinline
func closureCaller(n int) int {
	add := func(k int) int { return inner(k) + n }
	func() {
		defer func() { n += middle(n) }()
		n = add(n)
	}()
	return add(n)
}

//go:noinline
func panicCaller(n int) (result int) {
	defer func() {
		if r := recover(); r != nil {
			result = inner(n)
		}
	}()
	var p *square
	return p.side + n
}

func recursive(n int) int {
	if n <= 0 {
		return outer(1)
	}
	return recursive(n-1) + 1
}

func loadBias() uintptr {
	file, err := elf.Open("/proc/self/exe")
	if err != nil {
		panic(err)
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		panic(err)
	}
	exe, _ := os.Readlink("/proc/self/exe")
	for _, line := range strings.Split(string(maps), "\n") {
		fields := strings.Fields(line)
		if len(fields) < 6 || fields[5] != exe || fields[2] != "00000000" {
			continue
		}
		start, _ := strconv.ParseUint(strings.Split(fields[0], "-")[0], 16, 64)
		for _, p := range file.Progs {
			if p.Type == elf.PT_LOAD && p.Off < 4096 {
				return uintptr(start - p.Vaddr&^4095)
			}
		}
	}
	panic("the program's own mapping is not in /proc/self/maps")
}

// address prints what the runtime says of one, and whether it was printed as Go code. The runtime
// takes return addresses, one past the call; at a function's entry that would be another function's
// answer. The 1 behind it is no function's; without something behind it CallersFrames leaves the
// callers out.
func address(pc uintptr) bool {
	function, next := runtime.FuncForPC(pc), runtime.FuncForPC(pc+1)
	if function == nil && next == nil {
		fmt.Fprintf(out, "%x\tforeign\n", pc-bias)
		return false
	}
	if function == nil || next == nil || function.Entry() != next.Entry() {
		return false
	}
	frames := runtime.CallersFrames(append(expand.Calls(pc+1), 1))
	fmt.Fprintf(out, "%x\trandom", pc-bias)
	for {
		frame, more := frames.Next()
		out.WriteString("\t" + text(frame))
		if !more {
			break
		}
	}
	out.WriteByte('\n')
	return true
}

// randomAddresses prints COUNT addresses in Go code, and the foreign ones on the way.
func randomAddresses(count int) {
	file, err := elf.Open("/proc/self/exe")
	if err != nil {
		panic(err)
	}
	var code []elf.ProgHeader
	total := uint64(0)
	for _, p := range file.Progs {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 {
			code = append(code, p.ProgHeader)
			total += p.Memsz
		}
	}
	for count > 0 {
		at := uint64(rand.Int63n(int64(total)))
		for _, p := range code {
			if at < p.Memsz {
				if address(uintptr(p.Vaddr+at) + bias) {
					count--
				}
				break
			}
			at -= p.Memsz
		}
	}
}

func main() {
	count, _ := strconv.Atoi(os.Args[1])
	seed, _ := strconv.ParseInt(os.Args[2], 10, 64)
	rand.Seed(seed)
	calls = append(calls, chainCaller, wrapperCaller, closureCaller, panicCaller, recursive)
	for _, call := range calls {
		sink += call(3)
	}
	sink += asm.Sum(inner, asm.Twice(2))
	bias = loadBias()
	randomAddresses(count)
	var pcs []uintptr
	for pc := range seen {
		pcs = append(pcs, pc)
	}
	sort.Slice(pcs, func(i, k int) bool { return pcs[i] < pcs[k] })
	for _, pc := range pcs {
		fmt.Fprintf(out, "%x\tstack\t%s\n", pc-bias, seen[pc])
	}
	out.Flush()
}
