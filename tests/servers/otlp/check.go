// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// checker checks a request against the rules in profiles.proto, the MUSTs and the SHOULDs (no duplicates,
// no unreferenced entries).
type checker struct {
	d    pprofile.ProfilesDictionary
	used map[string][]bool // by table
	err  error
}

func (c *checker) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}

// need notes a reference.
func (c *checker) need(table string, i int32) bool {
	if i < 0 || int(i) >= len(c.used[table]) {
		c.fail("%s has no entry %d", table, i)
		return false
	}
	c.used[table][i] = true
	return true
}

func (c *checker) attributes(what string, indices pcommon.Int32Slice) {
	keys := map[int32]bool{}
	for _, i := range indices.AsRaw() {
		if i == 0 {
			c.fail("%s refers to attribute 0", what)
		}
		if !c.need("attribute", i) {
			return
		}
		key := c.d.AttributeTable().At(int(i)).KeyStrindex()
		if keys[key] {
			c.fail("%s has the attribute key %d twice", what, key)
		}
		keys[key] = true
	}
}

// table checks that entry 0 is the zero value and that no two are equal. KEY identifies an entry.
func (c *checker) table(name string, count int, key func(i int) string, zero string) {
	if count == 0 {
		c.fail("%s has no entry 0", name)
		return
	}
	if got := key(0); got != zero {
		c.fail("entry 0 of %s is %q", name, got)
	}
	seen := map[string]int{}
	for i := 0; i < count; i++ {
		k := key(i)
		if other, ok := seen[k]; ok {
			c.fail("entries %d and %d of %s are equal: %q", other, i, name, k)
		}
		seen[k] = i
	}
}

func (c *checker) strings() {
	t := c.d.StringTable()
	c.table("string", t.Len(), t.At, "")
	for i, s := range t.AsRaw() {
		if !utf8.ValidString(s) {
			c.fail("string %d is not UTF-8: %q", i, s)
		}
	}
}

func (c *checker) mappings() {
	t := c.d.MappingTable()
	c.table("mapping", t.Len(), func(i int) string {
		m := t.At(i)
		return fmt.Sprint(m.MemoryStart(), m.MemoryLimit(), m.FileOffset(), m.FilenameStrindex(),
			m.AttributeIndices().AsRaw())
	}, "0 0 0 0 []")
	for i := 0; i < t.Len(); i++ {
		c.need("string", t.At(i).FilenameStrindex())
		c.attributes("a mapping", t.At(i).AttributeIndices())
	}
}

func (c *checker) functions() {
	t := c.d.FunctionTable()
	c.table("function", t.Len(), func(i int) string {
		f := t.At(i)
		return fmt.Sprint(f.NameStrindex(), f.SystemNameStrindex(), f.FilenameStrindex(), f.StartLine())
	}, "0 0 0 0")
	for i := 0; i < t.Len(); i++ {
		f := t.At(i)
		c.need("string", f.NameStrindex())
		c.need("string", f.SystemNameStrindex())
		c.need("string", f.FilenameStrindex())
		if i > 0 && f.NameStrindex()+f.SystemNameStrindex()+f.FilenameStrindex() == 0 {
			c.fail("function %d has no name", i)
		}
	}
}

func (c *checker) locations() {
	t := c.d.LocationTable()
	c.table("location", t.Len(), func(i int) string {
		l, lines := t.At(i), ""
		for k := 0; k < l.Lines().Len(); k++ {
			line := l.Lines().At(k)
			lines += fmt.Sprint(line.FunctionIndex(), line.Line(), line.Column(), ";")
		}
		return fmt.Sprint(l.MappingIndex(), l.Address(), lines, l.AttributeIndices().AsRaw())
	}, "0 0[]")
	for i := 0; i < t.Len(); i++ {
		c.need("mapping", t.At(i).MappingIndex())
		c.attributes("a location", t.At(i).AttributeIndices())
		for k := 0; k < t.At(i).Lines().Len(); k++ {
			if t.At(i).Lines().At(k).FunctionIndex() == 0 {
				c.fail("a line of location %d has no function", i)
			}
			c.need("function", t.At(i).Lines().At(k).FunctionIndex())
		}
	}
}

func (c *checker) stacks() {
	t := c.d.StackTable()
	c.table("stack", t.Len(), func(i int) string { return fmt.Sprint(t.At(i).LocationIndices().AsRaw()) }, "[]")
	for i := 0; i < t.Len(); i++ {
		for _, l := range t.At(i).LocationIndices().AsRaw() {
			if l == 0 {
				c.fail("stack %d refers to location 0", i)
			}
			c.need("location", l)
		}
	}
}

func (c *checker) attributeTable() {
	t := c.d.AttributeTable()
	c.table("attribute", t.Len(), func(i int) string {
		a := t.At(i)
		return fmt.Sprint(a.KeyStrindex(), a.UnitStrindex(), a.Value().Type()) + a.Value().AsString()
	}, "0 0 Empty")
	for i := 0; i < t.Len(); i++ {
		if i > 0 && t.At(i).KeyStrindex() == 0 {
			c.fail("attribute %d has no key", i)
		}
		c.need("string", t.At(i).KeyStrindex())
		c.need("string", t.At(i).UnitStrindex())
	}
}

func (c *checker) valueType(what string, t pprofile.ValueType) {
	c.need("string", t.TypeStrindex())
	c.need("string", t.UnitStrindex())
	if t.TypeStrindex() == 0 || t.UnitStrindex() == 0 {
		c.fail("a profile without %s", what)
	}
}

func (c *checker) profile(p pprofile.Profile) {
	c.valueType("sample type", p.SampleType())
	c.valueType("period type", p.PeriodType())
	c.attributes("a profile", p.AttributeIndices())
	if p.Time() == 0 || p.Period() == 0 || p.ProfileID().IsEmpty() {
		c.fail("a profile without time, period or id")
	}
	identities := map[string]bool{}
	for i := 0; i < p.Samples().Len(); i++ {
		s := p.Samples().At(i)
		c.need("stack", s.StackIndex())
		c.need("link", s.LinkIndex())
		c.attributes("a sample", s.AttributeIndices())
		if s.Values().Len() == 0 || s.TimestampsUnixNano().Len() != 0 {
			c.fail("a sample with %d values and %d times", s.Values().Len(), s.TimestampsUnixNano().Len())
		}
		identity := fmt.Sprint(s.StackIndex(), s.AttributeIndices().AsRaw(), s.LinkIndex())
		if identities[identity] {
			c.fail("two samples with the same stack and attributes")
		}
		identities[identity] = true
	}
}

func (c *checker) resource(r pprofile.ResourceProfiles) {
	if _, ok := r.Resource().Attributes().Get("service.name"); !ok {
		c.fail("a resource without service.name")
	}
	for i := 0; i < r.ScopeProfiles().Len(); i++ {
		scope := r.ScopeProfiles().At(i)
		for k := 0; k < scope.Profiles().Len(); k++ {
			c.profile(scope.Profiles().At(k))
		}
	}
}

func check(p pprofile.Profiles) error {
	d := p.Dictionary()
	c := &checker{d: d, used: map[string][]bool{"string": make([]bool, d.StringTable().Len()),
		"mapping": make([]bool, d.MappingTable().Len()), "function": make([]bool, d.FunctionTable().Len()),
		"location": make([]bool, d.LocationTable().Len()), "stack": make([]bool, d.StackTable().Len()),
		"attribute": make([]bool, d.AttributeTable().Len()), "link": make([]bool, d.LinkTable().Len())}}
	links := d.LinkTable()
	c.table("link", links.Len(), func(i int) string {
		return links.At(i).TraceID().String() + links.At(i).SpanID().String()
	}, "")
	c.strings()
	c.mappings()
	c.functions()
	c.locations()
	c.stacks()
	c.attributeTable()
	for i := 0; i < p.ResourceProfiles().Len(); i++ {
		c.resource(p.ResourceProfiles().At(i))
	}
	for table, used := range c.used {
		for i := 1; i < len(used); i++ {
			if !used[i] {
				c.fail("nobody refers to entry %d of %s", i, table)
			}
		}
	}
	return c.err
}
