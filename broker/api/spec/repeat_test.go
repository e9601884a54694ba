package spec_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"switchboard/broker"
	"switchboard/broker/api/spec"
	"switchboard/events"
	"switchboard/kit/kittest"
)

// TestRepeatRules compares x-repeat of each operation with its parameters and its body.
func TestRepeatRules(t *testing.T) {
	d := parse(t, spec.OpenAPI(), false)
	for id, o := range operations(t, d) {
		rule := o.node["x-repeat"]
		if (o.method == http.MethodGet) != (rule == nil) {
			t.Errorf("%s %s: x-repeat is %v", o.method, id, rule)
		}
		conditions, _ := rule.(object)
		for kind, list := range conditions {
			for _, name := range list.([]any) {
				header := slices.ContainsFunc(o.parameters(d), func(p pointer) bool { return d.object(p)["name"] == name })
				member := slices.ContainsFunc(d.members(o.body(d), ""), func(path string) bool { return strings.HasSuffix(path, "/"+name.(string)) })
				if kind != "with" && kind != "unless" || !header && !member {
					t.Errorf("%s: x-repeat: %s %s", id, kind, name)
				}
			}
		}
		for _, p := range o.parameters(d) {
			if name := d.object(p)["name"]; name == "If-Match" && rule == "always" {
				t.Errorf("%s: a repeated call with If-Match is refused, so x-repeat cannot be always", id)
			}
		}
	}
}

// mayRepeat reports whether the document permits to repeat a step.
func (o *operation) mayRepeat(s *step) bool {
	if o.method == http.MethodGet || o.node["x-repeat"] == "always" {
		return true
	}
	var body any
	_ = json.Unmarshal([]byte(s.body), &body) // a body that is not JSON has no members
	has := func(name any) bool {
		return hasMember(body, name.(string)) || strings.HasPrefix(s.header, name.(string)+":")
	}
	rule, _ := o.node["x-repeat"].(object)
	if with, found := rule["with"].([]any); found {
		return slices.ContainsFunc(with, has)
	}
	unless, found := rule["unless"].([]any)
	return found && !slices.ContainsFunc(unless, has)
}

// kept returns what the answers to a DELETE and to its repetition have in common: all but what was
// there before.
func kept(answer []byte) string {
	return removed.ReplaceAllString(string(answer), `"$1":null`)
}

var removed = regexp.MustCompile(`"(deleted|previous)":(true|false|null|-?[0-9.]+)`)

func hasMember(body any, name string) bool {
	o, _ := body.(object)
	if messages, _ := o["messages"].([]any); len(messages) > 0 {
		return !slices.ContainsFunc(messages, func(m any) bool { return !hasMember(m, name) })
	}
	return o[name] != nil
}

// TestRepeatedCalls makes each call of the scenario twice that the document permits to repeat. The
// second one must be accepted, too, and the scenario must go on as without it. The answer to a
// repeated DELETE of the kit is that of the first one, but for deleted and previous.
func TestRepeatedCalls(t *testing.T) {
	webhooks := withWebhooks(t, events.NewMemory(events.StoreOptions{}))
	b := startBroker(t, kittest.NewMemory(), func(o *broker.Options) {
		webhooks(o)
		o.Limits.PushRate = 0
	})
	r := newRunner(t, b, map[string]map[int]bool{})
	repeated := map[string]bool{}
	r.around = func(s step, answer []byte) {
		o := r.operations[s.op]
		s.body, s.header = r.fill(s.body), r.fill(s.header)
		if answer == nil || o.method == http.MethodGet || !o.keyed || !o.mayRepeat(&s) {
			return
		}
		repeated[s.op] = true
		status, again := r.send(&s)
		if status != http.StatusOK {
			t.Errorf("%s %s %s: repeated: %d", s.op, s.path, s.body, status)
		}
		if o.method == http.MethodDelete && strings.HasPrefix(o.setting, "kit.") && kept(again) != kept(answer) {
			t.Errorf("%s %s: the answer is %s, and repeated %s", s.op, s.path, answer, again)
		}
	}
	r.scenario()
	for id, o := range r.operations {
		if rule := o.node["x-repeat"]; o.keyed && rule != nil && rule != "never" && !repeated[id] {
			t.Errorf("%s: no call of the scenario may be repeated", id)
		}
	}
}
