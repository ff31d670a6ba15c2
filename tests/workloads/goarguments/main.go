// SPDX-License-Identifier: Apache-2.0

// Functions that print their arguments and results as a trace shows them.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
)

type point struct{ x, y int }
type line struct {
	from, to point
	label    string
}
type person struct {
	name string
	age  int
	tags []string
	next *person
}
type shape interface{ area() float64 }
type square struct{ side float64 }
type name string
type small struct {
	a int8
	b uint16
	c bool
}

func (s *square) area() float64 { return s.side * s.side }

func call(function, format string, values ...interface{}) {
	fmt.Printf("call main."+function+"("+format+")\n", values...)
}

func left(function, format string, values ...interface{}) {
	fmt.Printf("left main."+function+": "+format+"\n", values...)
}

func text(p interface{}) string {
	switch p := p.(type) {
	case nil:
		return "nil"
	case error:
		if p == nil {
			return "nil"
		}
	}
	return fmt.Sprintf("<%T>", p)
}

//go:noinline
func ints(zz int8, aa uint64, mm int32, b bool) (sum int) {
	call("ints", "zz=%d, aa=%d, mm=%d, b=%t", zz, aa, mm, b)
	if b {
		sum = int(zz)
	} else {
		sum = int(aa) + int(mm)
	}
	left("ints", "sum=%d", sum)
	return sum
}

//go:noinline
func texts(s string, t name) (int, error) {
	var err error
	call("texts", "s=%q, t=%q", s, string(t))
	if s == string(t) {
		err = errors.New("same")
	}
	left("texts", "%d, %s", len(s), text(err))
	return len(s), err
}

//go:noinline
func slices(a []int, m map[string]int, e []string) []int {
	length := "nil"
	if m != nil {
		length = fmt.Sprintf("map[len %d]", len(m))
	}
	call("slices", "a=[len %d, cap %d], m=%s, e=[len %d, cap %d]", len(a), cap(a), length, len(e), cap(e))
	a = append(a, len(m))
	left("slices", "[len %d, cap %d]", len(a), cap(a))
	return a
}

//go:noinline
func (p *person) rename(to string, unused int, f float64, last uint8) string {
	receiver := "nil"
	if p != nil {
		next := "nil"
		if p.next != nil {
			next = fmt.Sprintf("%p", p.next)
		}
		receiver = fmt.Sprintf("&{name=%q, age=%d, tags=[len %d, cap %d], next=%s}", p.name, p.age,
			len(p.tags), cap(p.tags), next)
	}
	call("(*person).rename", "p=%s, to=%q, unused=%d, f=%s, last=%d", receiver, to, unused, number(f), last)
	old := "nobody"
	if p != nil {
		old = p.name
		p.name = to
	}
	left("(*person).rename", "%q", old)
	return old
}

//go:noinline
func shapes(s shape, any interface{}, err error, p point) (shape, interface{}) {
	call("shapes", "s=%s, any=%s, err=%s, p={x=%d, y=%d}", text(s), text(any), text(err), p.x, p.y)
	if p.x == 0 {
		left("shapes", "nil, nil")
		return nil, nil
	}
	left("shapes", "%s, %s", text(s), text(any))
	return s, any
}

//go:noinline
func many(a, b, c, d, e, f, g, h, i, j, k, l int, s string, last int16) (int, string, small) {
	call("many", "a=%d, b=%d, c=%d, d=%d, e=%d, f=%d, g=%d, h=%d, i=%d, j=%d, k=%d, l=%d, s=%q, last=%d",
		a, b, c, d, e, f, g, h, i, j, k, l, s, last)
	left("many", "%d, %q, {a=-1, b=2, c=true}", a+l, s[1:])
	return a + l, s[1:], small{-1, 2, true}
}

//go:noinline
func results(n int) (a, b, c, d, e, f, g, h, i, j, k int, s string) {
	call("results", "n=%d", n)
	left("results", "a=%d, b=2, c=3, d=4, e=5, f=6, g=7, h=8, i=9, j=10, k=11, s=%q", n, "end")
	return n, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, "end"
}

//go:noinline
func nested(l line, arr [2]int16, one [1]string, s small) (point, [2]int16) {
	call("nested", "l={from={x=%d, y=%d}, to={x=%d, y=%d}, label=%q}, arr=[%d, %d], one=?, s={a=%d, b=%d, c=%t}",
		l.from.x, l.from.y, l.to.x, l.to.y, l.label, arr[0], arr[1], s.a, s.b, s.c)
	left("nested", "{x=%d, y=%d}, [%d, %d]", l.to.x, l.to.y, arr[0], arr[1])
	return l.to, arr
}

//go:noinline
func long(s string) string {
	call("long", "s=%q...(%d bytes)", s[:64], len(s))
	left("long", "%q...(%d bytes)", s[:64], len(s))
	return s
}

// Restarts on a larger stack: its arguments are what they were.
//
//go:noinline
func deep(n int, s string) int {
	var frame [1024]byte
	for i := range frame {
		frame[i] = byte(n)
	}
	if n > 0 {
		return deep(n-1, s) + int(frame[n])
	}
	return len(s)
}

//go:noinline
func odd(b []byte, control string) {
	call("odd", "b=[len %d, cap %d], control=%s", len(b), cap(b), `"\"\\\n\x1b\xff\x00é"`)
	left("odd", "")
}

// floats are seen where they are on the stack.
var floats = len(os.Args) > 1

func number(f float64) string {
	if floats {
		return fmt.Sprint(f)
	}
	return "?"
}

func calls() {
	ints(-3, 1<<63, 77, true)
	ints(3, 4, -77, false)
	texts("left", "right")
	texts("x", "x")
	texts("", "right")
	slices([]int{1, 2}, map[string]int{"a": 1, "b": 2}, nil)
	slices(nil, nil, make([]string, 2, 9))
	p := &person{"Alice", 30, []string{"a"}, &person{}}
	p.rename("Bob", 9, 1.5, 200)
	p.next = nil
	p.rename("Carol", -9, 1.5, 0)
	(*person)(nil).rename("nobody", 0, 0, 1)
	shapes(&square{2}, 42, os.ErrNotExist, point{5, 6})
	shapes(nil, nil, nil, point{})
	shapes(&square{2}, map[string]point{}, &os.PathError{}, point{-5, 6})
	many(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, "stack", -14)
	results(-1)
	nested(line{point{1, 2}, point{3, 4}, "l"}, [2]int16{1, 2}, [1]string{"one"}, small{-1, 65535, true})
	long(fmt.Sprintf("%0300d", 7))
	odd([]byte{1}, "\"\\\n\x1b\xff\x00é")
}

// What is read for the first time may not be in memory yet, where a probe cannot wait for it: only
// the second round counts. With EACH_LINE in the environment there is a round for each line of input first.
func main() {
	lines := bufio.NewScanner(os.Stdin)
	for os.Getenv("EACH_LINE") != "" && lines.Scan() {
		calls()
	}
	calls()
	calls()
	done := make(chan int)
	go func() { done <- deep(200, "deep") }()
	<-done
}
