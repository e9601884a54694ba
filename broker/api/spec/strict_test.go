package spec_test

import (
	"bytes"
	"strings"
	"testing"

	"switchboard/broker"
	"switchboard/events"
	"switchboard/kit/kittest"
)

// TestRefusedBodies makes every call of the scenario with bodies that differ from a valid one in
// one member. A body that does not fit the document must be refused with a message that names the
// member, and change nothing: the scenario goes on as without it.
func TestRefusedBodies(t *testing.T) { playMutations(t, false) }

// TestAcceptedBodies is like TestRefusedBodies, for bodies that fit the document. They must not be
// refused as a bad request.
func TestAcceptedBodies(t *testing.T) { playMutations(t, true) }

// playMutations plays the scenario with the bodies that fit the document, or with the others.
func playMutations(t *testing.T, valid bool) {
	webhooks := withWebhooks(t, events.NewMemory(events.StoreOptions{}))
	b := startBroker(t, kittest.NewMemory(), func(o *broker.Options) {
		webhooks(o)
		o.Limits.PushRate = 0
	})
	r := newRunner(t, b, map[string]map[int]bool{})
	r.loose = valid
	sent := map[string]bool{}
	r.around = func(s step, answer []byte) {
		after := answer != nil
		if s.body == "" || s.whole || after != valid || strings.HasPrefix(s.op, "acknowledge") {
			return
		}
		o := r.operations[s.op]
		for _, path := range membersOf(r.fill(s.body)) {
			sent[s.op+path] = true
		}
		free := func(body string) bool { return r.document.check(t, o.body(r.document), []byte(body)) == nil }
		for _, m := range mutations(r.fill(s.body), free) {
			if r.document.fits(t, o.body(r.document), m) == valid {
				r.sendMutation(s, m, valid)
			}
		}
	}
	r.scenario()
	for id, o := range r.operations {
		for _, path := range r.document.members(o.body(r.document), "") {
			if !sent[id+path] && !valid && !strings.HasSuffix(path, "/notify_after") { // the test brokers send no such events
				t.Errorf("%s: no call of the scenario has the member %s", id, path)
			}
		}
	}
}

// fits reports whether the schema at p permits a body. null in a member that is not required means
// that it is absent.
func (d *document) fits(t *testing.T, p pointer, m mutation) bool {
	one := func(body string) bool { return body != "" && d.check(t, p, []byte(body)) == nil }
	return m.kind != "twice" && (one(m.body) || one(m.absent))
}

// named reports whether an answer names the member that is wrong.
func (m *mutation) named(answer []byte) bool {
	return bytes.Contains(answer, []byte(m.member)) || m.outer != "" && bytes.Contains(answer, []byte(m.outer))
}

// sendMutation sends a body, and fails the test unless it is refused or accepted as it must be.
func (r *runner) sendMutation(s step, m mutation, valid bool) {
	r.t.Helper()
	s.body = m.body
	status, text := r.send(&s)
	refused := status >= 400 && status < 500 || s.op == "pushBatch" && bytes.Contains(text, []byte(`"code":"bad_request"`))
	bad := ""
	switch {
	case valid && textAt(text, "error.code") == "bad_request" && !bytes.Contains(text, []byte("If-Match")): // its condition
		bad = "the document permits it"
	case !valid && !refused:
		bad = "the document does not permit it"
	case !valid && !m.named(text):
		bad = "the answer does not name the member"
	}
	if bad != "" {
		r.t.Errorf("%s: %s %s: %.300s: %d %.300s: %s", s.op, m.member, m.kind, m.body, status, bytes.TrimSpace(text), bad)
	}
}
