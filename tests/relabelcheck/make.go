// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math/rand"
	"regexp"
	"strings"

	"github.com/prometheus/prometheus/model/labels"
)

var names = []string{"a", "a", "a", "b", "b", "comm", "comm", "A_1", "_", "__meta_x", "__meta_y_z"}

var values = []string{
	"", "a", "ab", "aab", "10", "a;b", "x-y", "nginx", "nginx: worker process", "/usr/bin/nginx",
	"foo\nbar", "foo\n", "\nfoo", "\n", "a\vb", "\v", "a\rb", "\t \f", "first line\nsecond line\n",
	"Straße", "ÄÖ İı ǅ ﬀ", "İstanbul", "日本", "K", "ſ", "\u0085", "\u2028", "\u00a0",
}

// Patterns that both syntaxes have, and some that neither takes.
var patterns = []string{
	".*", "(.*)", "", "a", "a|ab", "(a|ab)(.*)", "nginx.*", "(?i)NGINX", "(?i)k", "(?i)s", "foo.bar",
	"foo\\sbar", "foo$", "^foo", "foo$\\n", "(?P<n>[a-z]+)(?:.*)", "(?<n>a).*", "\\w+", "[[:alpha:]]+",
	"\\d+", "\\pL+", "[^;]+;(.+)", "(.+);(.*)", "(?m)^foo$\\n^bar$", "(?m)foo$(.*)", "(?m)foo\\n^",
	"(?m).*^(.*)", "(?m)(.*?)$.*", "(?m)^$\\n^$", "__meta_(.+)", "(_)*(.*)", "((a)|b)+", "\\S+", ".+",
	"(?s).*", "(?-s).*", "(?-s)foo.(.*)", "(?-s:.*)\\n.*", "[\\s]", "[^\\s]+", "[^\\S]", "\\s*", "\\S",
	"[\\S]*", "[\\S\\n]+", "[\\s-]+", "[\\s-x]+", "a\\vb", "\\v", "[\\v]", "[^\\v]+", "[\\t-\\v]*",
	"[[:space:]]+", "\\\\v", "\\Q\\v\\E", "\\x{65e5}.", "\\x0b", "\\bfoo\\b.*", ".*\\Bo.*",
	"(?U)(a+)(.*)", "(a+?)(.*)", "a{0}", "a{1,2}b", "[a-\\d]", "\\Qa;b\\E", "(?i)straSSe",
	"(?i)İstanbul", "\\p{Greek}*", "\\P{Lu}+", "[\\p{Lu}a-z]+", "\\A\\w*\\z", "\\z", "\\a", "\\07",
	"[\\w-]+", "(?i:N)ginx", "(a)(b)?", "(a)?(b)?(.*)", "[[:word:]]+", "[[:^alpha:]]+", "[]a]+", "[^]a]+",
	"[a\\]b]+", "first.*line.*", "(.*)\\n(.*)\\n", "(?:a|)(b|)",
	"{", "a{,2}", "x{,2}b|a{,2}", "{a}+", "[\\w-;]+", "[[:alpha:]-;]+", "[\\pL-;]+", "[^\\d-]*", "[{]a", "\\{",
	"(", "a)", "[", "[b-a]", "*a", "a{2,1}", "(?P<n", "[[:nope:]]", "\\p{Nope}", "\\",
}

var replacements = []string{
	"$1", "${1}", "$1$2", "x", "", "$$1", "${n}", "$n", "$0", "$10", "${1}_y", "$1_y", "a$", "$-", "${",
	"${1", "foo ${1} $2", "$é", "${é}", "a\nb",
}

var (
	plainTargets   = []string{"a", "b", "new", "__tmp"}
	targets        = []string{"a", "b", "new", "__tmp", "${1}", "$1", "t_$1", "${1}_x", "${2}$1", "m_$0"}
	refusedTargets = []string{"0a", "a-b", "a$", "${", "", "日", "a b"}
)

var actions = []string{
	"replace", "replace", "keep", "drop", "labelmap", "labeldrop", "labelkeep", "hashmod", "lowercase",
	"uppercase", "keepequal", "dropequal",
}

type maker struct{ *rand.Rand }

func (m maker) pick(list []string) string { return list[m.Intn(len(list))] }

func (m maker) one(of int) bool { return m.Intn(of) == 0 }

// An atom of a made pattern, over few characters so that it often matches.
func (m maker) atom(depth int) string {
	switch m.Intn(14) {
	case 0, 1:
		return "."
	case 2:
		return m.pick([]string{"\\s", "\\S", "\\w", "\\W", "\\d", "\\D", "\\v", "\\n"})
	case 3:
		return m.pick([]string{"[ab]", "[^a]", "[a-z\\s]", "[^\\v]", "[\\n\\v;]", "[[:print:]]"})
	case 4:
		return m.pick([]string{"^", "$", "\\b", "\\B", "(?m)", "(?m:^)", "(?m:$)", "(?i)", "(?-s)"})
	case 5, 6, 7:
		if depth > 0 {
			return m.pick([]string{"(", "(?:", "(", "(?P<g%d>"}) + m.pattern(depth-1) + ")"
		}
	}
	return m.pick([]string{"a", "b", "o", "foo", "x", "-", ";", "\\n", "\\x61", "é"})
}

// Whether ATOM always takes a character. A group that may match nothing is where RE2 and Perl's family
// differ by design, when it is repeated: which of its turns is the group's text.
func repeatable(atom string) bool {
	re, err := regexp.Compile("^(?s:" + strings.ReplaceAll(atom, "<g%d>", "<g>") + ")$")
	return err == nil && !re.MatchString("") && !strings.Contains(atom, "\\b")
}

func (m maker) pattern(depth int) string {
	var out strings.Builder
	for n := 1 + m.Intn(3); n > 0; n-- {
		atom := m.atom(depth)
		out.WriteString(atom)
		if m.one(3) && repeatable(atom) {
			out.WriteString(m.pick([]string{"*", "+", "?", "*?", "+?", "{1,2}"}))
		}
	}
	if m.one(4) {
		return out.String() + "|" + m.atom(0)
	}
	return out.String()
}

// A pattern of the list, or a made one whose named groups have numbers.
func (m maker) regex() string {
	if m.one(2) {
		return m.pick(patterns)
	}
	parts := strings.Split(m.pattern(2), "%d")
	for i := 1; i < len(parts); i++ {
		parts[i] = fmt.Sprint(i) + parts[i]
	}
	return strings.Join(parts, "")
}

func (m maker) maybe(of int, make func() string) *string {
	if !m.one(of) {
		return nil
	}
	s := make()
	return &s
}

func (m maker) from(list []string) func() string {
	return func() string { return m.pick(list) }
}

func (m maker) target(action string) *string {
	list := plainTargets
	switch action {
	case "labelmap", "keep", "drop":
		return nil
	case "replace":
		list = targets
	}
	if m.one(40) {
		list = refusedTargets
	}
	return m.maybe(1, m.from(list))
}

// A rule that has mostly what its action takes, and now and then what it refuses.
func (m maker) rule() rule {
	r := rule{action: m.pick(actions)}
	odd := m.one(40)
	equal := r.action == "keepequal" || r.action == "dropequal"
	bare := r.action == "labeldrop" || r.action == "labelkeep"
	cases := r.action == "lowercase" || r.action == "uppercase"
	if !bare || odd {
		for n := (m.Intn(6) + 2) / 3; n > 0; n-- {
			r.sources = append(r.sources, m.pick(names))
		}
		r.target = m.target(r.action)
	}
	if !equal || odd {
		regexOf := 2
		if r.action != "hashmod" && !cases {
			regexOf = 1
		}
		r.regex = m.maybe(regexOf, m.regex)
	}
	if !equal && !bare || odd {
		r.separator = m.maybe(3, m.from([]string{"", ",", ";", ";", "\n", "--"}))
	}
	if r.action == "replace" || odd {
		r.replacement = m.maybe(1, m.from(replacements))
	}
	if r.action == "labelmap" {
		r.replacement = m.maybe(1, m.from(targets))
	}
	if r.action == "hashmod" {
		r.modulus = uint64(m.Intn(30))
		if m.one(4) {
			r.modulus = m.Uint64()
		}
	}
	return r
}

// Mostly one, so that a difference shows whose it is.
func (m maker) rules() []rule {
	list := []rule{m.rule()}
	for m.one(4) && len(list) < 4 {
		list = append(list, m.rule())
	}
	return list
}

func (m maker) value() string {
	if m.one(3) {
		var out strings.Builder
		for n := m.Intn(6); n > 0; n-- {
			out.WriteString(m.pick([]string{"a", "b", "o", "foo", "x", "-", ";", "\n", "\v", " ", "é", "Z"}))
		}
		return out.String()
	}
	return m.pick(values)
}

func (m maker) labels() labels.Labels {
	b := labels.NewBuilder(labels.EmptyLabels())
	for n := m.Intn(5); n > 0; n-- {
		b.Set(m.pick(names), m.value())
	}
	return b.Labels()
}
