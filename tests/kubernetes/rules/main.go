// SPDX-License-Identifier: Apache-2.0

// Judges deploy/monitoring with Prometheus' own parser, storage and query engine:
//
//	rules PROMETHEUSRULE.yaml DASHBOARD.json FIRST SECOND SECONDS
//
// FIRST and SECOND are /metrics of a live agent, SECONDS apart, that go on like that for three hours. Each
// selector in a rule or a panel must find series there; each panel must show something; no alert may fire;
// and each must fire when the one thing is changed that it is for, with the labels that its text names.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"gopkg.in/yaml.v3"
)

type rule struct {
	Alert       string
	Expr        string
	Labels      map[string]string
	Annotations map[string]string
}

type ruleFile struct {
	Spec struct {
		Groups []struct {
			Name  string
			Rules []rule
		}
	}
}

type panel struct {
	Title   string
	Targets []struct{ Expr string }
}

var failed = 0

func check(ok bool, format string, arguments ...any) {
	verdict := "ok  :"
	if !ok {
		verdict = "FAIL:"
		failed++
	}
	fmt.Println(verdict, fmt.Sprintf(format, arguments...))
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "rules:", err)
		os.Exit(1)
	}
}

func read(path string) []byte {
	text, err := os.ReadFile(path)
	must(err)
	return text
}

// What Grafana would put into a panel's query.
func filledIn(expression string) string {
	return strings.NewReplacer("$__rate_interval", "5m", "$job", ".*", "$node", ".*").Replace(expression)
}

// Each selector finds series when only labels that name values exactly are asked for, except `absent` ones.
func checkSelectors(s *server, where, expression string) {
	parsed, err := parser.ParseExpr(expression)
	if err != nil {
		check(false, "%s: %v", where, err)
		return
	}
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		selector, ok := node.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		wanted := &parser.VectorSelector{Name: selector.Name}
		for _, m := range selector.LabelMatchers {
			if m.Type == labels.MatchEqual || m.Name == "__name__" {
				wanted.LabelMatchers = append(wanted.LabelMatchers, m)
				continue
			}
			wanted.LabelMatchers = append(wanted.LabelMatchers, labels.MustNewMatcher(labels.MatchNotEqual, m.Name, ""))
		}
		found, err := s.query(wanted.String())
		check(err == nil && len(found) > 0, "%s: the agent has %s %v", where, wanted, errorText(err))
		return nil
	})
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func checkPanels(s *server, path string) {
	var board struct{ Panels []panel }
	must(json.Unmarshal(read(path), &board))
	count := 0
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			count++
			expression := filledIn(target.Expr)
			checkSelectors(s, p.Title, expression)
			found, err := s.query(expression)
			check(err == nil && len(found) > 0, "%s: shows %d series %s", p.Title, len(found), errorText(err))
		}
	}
	check(count > 20, "%d queries in the dashboard", count)
}

func checkHealthy(s *server, rules []rule) {
	for _, r := range rules {
		checkSelectors(s, r.Alert, r.Expr)
		found, err := s.query(r.Expr)
		check(err == nil && len(found) == 0, "%s does not fire for a healthy agent: %v %s", r.Alert, found, errorText(err))
	}
}

var labelName = regexp.MustCompile(`\$labels\.(\w+)`)

func checkFires(all []series, rules []rule) {
	for _, r := range rules {
		broken, count := changed(all, breaks[r.Alert])
		check(count > 0, "%s: a case that makes it fire, of %d series", r.Alert, count)
		s, err := newServer(broken)
		must(err)
		found, err := s.query(r.Expr)
		check(err == nil && len(found) > 0, "%s fires when it should %s", r.Alert, errorText(err))
		for _, sample := range found {
			for _, name := range labelName.FindAllStringSubmatch(r.Annotations["summary"]+r.Annotations["description"], -1) {
				check(sample.Metric.Get(name[1]) != "", "%s: its text has the label %s", r.Alert, name[1])
			}
		}
		check(r.Labels["severity"] != "" && r.Annotations["description"] != "", "%s: has a severity and says what to do", r.Alert)
		s.close()
	}
}

func main() {
	if len(os.Args) != 6 {
		must(fmt.Errorf("usage: rules PROMETHEUSRULE.yaml DASHBOARD.json FIRST SECOND SECONDS"))
	}
	seconds, err := strconv.ParseFloat(os.Args[5], 64)
	must(err)
	all, err := fromScrapes(os.Args[3], os.Args[4], seconds)
	must(err)
	all, count := changed(all, settled)
	check(count > 1, "%d series settle", count)
	var file ruleFile
	must(yaml.Unmarshal(read(os.Args[1]), &file))
	var rules []rule
	for _, group := range file.Spec.Groups {
		rules = append(rules, group.Rules...)
	}
	s, err := newServer(all)
	must(err)
	defer s.close()
	check(len(rules) == len(breaks), "%d alerts, a case for each", len(rules))
	checkHealthy(s, rules)
	checkPanels(s, os.Args[2])
	checkFires(all, rules)
	if failed > 0 {
		os.Exit(1)
	}
}
