package spec_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"switchboard/broker"
	"switchboard/events"
	"switchboard/internal/wire"
	"switchboard/kit/kittest"
)

// attempt is a call that must be refused with a message that has the text.
type attempt struct {
	query  string
	header string
	body   string
	text   string
}

// TestRefusedParameters makes the calls of the scenario with parameters, conditions and bodies that
// the document does not have, or that do not fit it.
func TestRefusedParameters(t *testing.T) {
	webhooks := withWebhooks(t, events.NewMemory(events.StoreOptions{}))
	b := startBroker(t, kittest.NewMemory(), func(o *broker.Options) {
		webhooks(o)
		o.Limits.PushRate = 0
	})
	r := newRunner(t, b, map[string]map[int]bool{})
	r.scenario()
	for id, o := range r.operations {
		s, found := r.first[id]
		if !found || !strings.HasPrefix(o.path, "/v1/") {
			continue
		}
		for _, a := range r.attempts(o, &s) {
			again := s
			again.query, again.header = a.query, a.header
			if a.body != "" {
				again.body = a.body
			}
			status, text := r.send(&again)
			if status != http.StatusBadRequest || !bytes.Contains(text, []byte(a.text)) {
				t.Errorf("%s: %+v: %d %s", id, a, status, text)
			}
		}
	}
}

// attempts returns what must be refused for an operation. s is a call that was accepted.
func (r *runner) attempts(o *operation, s *step) (list []attempt) {
	valid, _ := url.ParseQuery(s.query)
	with := func(name string, values ...string) string {
		query := url.Values{}
		for n, v := range valid {
			query[n] = v
		}
		query[name] = values
		return query.Encode()
	}
	list = append(list, attempt{query: with("zz", "1"), header: s.header, text: "zz"}, attempt{query: "zz=%zz", header: s.header, text: "query"})
	conditions := map[string]bool{}
	for _, p := range o.parameters(r.document) {
		parameter := r.document.object(p)
		name := parameter["name"].(string)
		if parameter["in"] == "header" {
			conditions[name] = true
			list = append(list, attempt{query: s.query, header: withToken(s.header, name+": x"), text: name})
		}
		if parameter["in"] != "query" {
			continue
		}
		for _, values := range r.wrongValues(p) {
			list = append(list, attempt{query: with(name, values...), header: s.header, text: name})
		}
		if parameter["required"] == true {
			list = append(list, attempt{query: with(name), header: s.header, text: name})
		}
	}
	if o.method == http.MethodGet {
		return list
	}
	for name, value := range map[string]string{"If-Match": `"1"`, "If-None-Match": "*"} {
		if !conditions[name] {
			list = append(list, attempt{query: s.query, header: name + ": " + value, text: name})
		}
	}
	if o.node["requestBody"] == nil {
		list = append(list, attempt{query: s.query, header: s.header, body: `{"zz":1}`, text: "zz"})
	}
	return list
}

// withToken returns the headers of a call with another one instead of all but its token.
func withToken(headers, other string) string {
	for line := range strings.Lines(headers) {
		if strings.HasPrefix(line, "Authorization:") {
			return strings.TrimSuffix(line, "\n") + "\n" + other
		}
	}
	return other
}

// wrongValues returns values that a parameter of the query must not have.
func (r *runner) wrongValues(p pointer) (list [][]string) {
	schema := r.document.object(p.at("schema"))
	text := func(name string, more int64) string {
		limit, _ := strconv.ParseInt(fmt.Sprint(schema[name]), 10, 64)
		return strconv.FormatInt(limit+more, 10)
	}
	list = append(list, []string{"1", "1"})
	if schema["type"] == "integer" {
		list = append(list, []string{"x"}, []string{"1.5"}, []string{text("minimum", -1)}, []string{text("maximum", 1)})
	}
	if schema["enum"] != nil {
		list = append(list, []string{"zz"})
	}
	return list
}

// TestBadCursors finds lists with another text for a cursor that no page has returned.
func TestBadCursors(t *testing.T) {
	r := newRunner(t, startBroker(t, kittest.NewMemory(), withWebhooks(t, events.NewMemory(events.StoreOptions{}))), map[string]map[int]bool{})
	r.scenario()
	n := 0
	for id, o := range r.operations {
		s, found := r.first[id]
		cursor := slices.ContainsFunc(o.parameters(r.document), func(p pointer) bool { return r.document.object(p)["name"] == "cursor" })
		if !found || !cursor {
			continue
		}
		s.query += "&cursor=%20no%20such%20page"
		if status, text := r.send(&s); status == http.StatusBadRequest {
			n++
			if want := wire.BadCursor().Message; textAt(text, "error.message") != want {
				t.Errorf("%s: %s", id, text)
			}
		} else if status != http.StatusOK { // names are cursors, too
			t.Errorf("%s: %d %s", id, status, text)
		}
	}
	if n < 6 {
		t.Errorf("only %d lists refuse it", n)
	}
}

// send makes a call, and returns its status and its body.
func (r *runner) send(s *step) (status int, text []byte) {
	r.t.Helper()
	resp, err := httpClient.Do(r.request(r.operations[s.op], s))
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, err = readBody(resp); err != nil {
		r.t.Fatal(err)
	}
	return resp.StatusCode, text
}
