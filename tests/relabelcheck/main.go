// SPDX-License-Identifier: Apache-2.0

// relabelcheck SEED COUNT: COUNT random cases of relabelling, with the results that Prometheus' own
// package gives for them. tests/unit/test_relabel_corpus.c applies the same rules and compares.
//
// A case is one line of fields with a blank between them:
//
//	rule ACTION N SOURCE-LABEL... SEPARATOR REGEX MODULUS TARGET REPLACEMENT   (one or more)
//	labels N NAME VALUE...
//	RESULT: `refused` (by the check of the rules), `dropped`, or `kept N NAME VALUE...`
//
// A text is =TEXT with %XX for control characters, blanks and %; a field that the rule does not have
// is -.
package main

import (
	"bufio"
	"fmt"
	"math/rand"
	"os"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
)

// rule is a relabel_config as written in a file; an empty pointer is a field that is not there.
type rule struct {
	action                                string
	sources                               []string
	separator, regex, target, replacement *string
	modulus                               uint64
}

func text(s string) string {
	var out strings.Builder
	out.WriteByte('=')
	for i := 0; i < len(s); i++ {
		if c := s[i]; c <= ' ' || c == 0x7f || c == '%' {
			fmt.Fprintf(&out, "%%%02x", c)
		} else {
			out.WriteByte(c)
		}
	}
	return out.String()
}

func optional(s *string) string {
	if s == nil {
		return "-"
	}
	return text(*s)
}

func (r *rule) write(out *strings.Builder) {
	fmt.Fprintf(out, "rule %s %d ", r.action, len(r.sources))
	for _, source := range r.sources {
		out.WriteString(text(source) + " ")
	}
	fmt.Fprintf(out, "%s %s %d %s %s ", optional(r.separator), optional(r.regex), r.modulus,
		optional(r.target), optional(r.replacement))
}

// config is what Prometheus reads from a file that has R.
func (r *rule) config() (*relabel.Config, error) {
	c := relabel.DefaultRelabelConfig
	c.Action = relabel.Action(r.action)
	c.Modulus = r.modulus
	for _, source := range r.sources {
		if !model.LegacyValidation.IsValidLabelName(source) {
			return nil, fmt.Errorf("%q is no label name", source)
		}
		c.SourceLabels = append(c.SourceLabels, model.LabelName(source))
	}
	for _, field := range []struct{ from, to *string }{
		{r.separator, &c.Separator}, {r.target, &c.TargetLabel}, {r.replacement, &c.Replacement},
	} {
		if field.from != nil {
			*field.to = *field.from
		}
	}
	if r.regex != nil {
		regex, err := relabel.NewRegexp(*r.regex)
		if err != nil {
			return nil, err
		}
		c.Regex = regex
	}
	return &c, c.Validate(model.LegacyValidation)
}

func pairs(out *strings.Builder, set labels.Labels) {
	fmt.Fprintf(out, "%d", set.Len())
	set.Range(func(l labels.Label) {
		fmt.Fprintf(out, " %s %s", text(l.Name), text(l.Value))
	})
}

// one case as its line.
func one(rules []rule, set labels.Labels) string {
	var out strings.Builder
	configs := make([]*relabel.Config, 0, len(rules))
	refused := false
	for i := range rules {
		rules[i].write(&out)
		config, err := rules[i].config()
		refused = refused || err != nil
		configs = append(configs, config)
	}
	out.WriteString("labels ")
	pairs(&out, set)
	if refused {
		return out.String() + " refused"
	}
	for _, config := range configs {
		kept := false
		if set, kept = process(set, config); !kept {
			return out.String() + " dropped"
		}
	}
	out.WriteString(" kept ")
	pairs(&out, set)
	return out.String()
}

// process is relabel.Process without the labels that labelmap makes of names that are none, which no
// server takes: Fathom leaves them out at once.
func process(set labels.Labels, config *relabel.Config) (labels.Labels, bool) {
	builder := labels.NewBuilder(set)
	if !relabel.ProcessBuilder(builder, config) {
		return set, false
	}
	builder.Range(func(l labels.Label) {
		if !model.LegacyValidation.IsValidLabelName(l.Name) {
			builder.Del(l.Name)
		}
	})
	return builder.Labels(), true
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: relabelcheck SEED COUNT")
		os.Exit(2)
	}
	seed, seedErr := strconv.ParseInt(os.Args[1], 10, 64)
	count, countErr := strconv.Atoi(os.Args[2])
	if seedErr != nil || countErr != nil {
		fmt.Fprintln(os.Stderr, "relabelcheck: SEED and COUNT are numbers")
		os.Exit(2)
	}
	w := bufio.NewWriter(os.Stdout)
	m := maker{rand.New(rand.NewSource(seed))}
	for i := 0; i < count; i++ {
		fmt.Fprintln(w, one(m.rules(), m.labels()))
	}
	if err := w.Flush(); err != nil {
		fmt.Fprintln(os.Stderr, "relabelcheck:", err)
		os.Exit(1)
	}
}
