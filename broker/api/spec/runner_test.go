package spec_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"switchboard/broker/api/spec"
	"switchboard/kit/kittest"
)

// step is one call of a scenario. {{name}} stands for a value that an earlier step has saved.
type step struct {
	op     string // operationId
	path   string // the values of the path's parameters, with a space between them
	query  string
	body   string
	header string // "Name: value", one a line
	key    string // the API key; "" for one with the scope of the operation, "-" for none
	status int    // 0 for 200
	code   string // of the error
	save   string // "name=path name2=path2", where a path is a.0.b in the answer
	before func() // called before the step; nil for nothing
	whole  bool   // TestRefusedBodies does not change the body
}

// runner makes calls, and compares requests and answers with the OpenAPI document.
type runner struct {
	t          *testing.T
	broker     *kittest.Broker
	document   *document // closed
	operations map[string]*operation
	saved      map[string]string
	// around is called before and after each call of a scenario that is not to be refused. Nil means
	// no call.
	around func(s step, answer []byte)
	// loose ignores the answers of steps, for a test that changes what they expect.
	loose bool

	mu    sync.Mutex
	seen  map[string]map[int]bool // statuses by operationId
	first map[string]step         // the first accepted call of each operation
}

// newRunner returns a runner that adds the statuses of its calls to seen.
func newRunner(t *testing.T, b *kittest.Broker, seen map[string]map[int]bool) *runner {
	d := parse(t, spec.OpenAPI(), true)
	requireTyped(d.root, func(string) bool { return true })
	return &runner{
		t: t, broker: b, document: d, operations: operations(t, d), saved: map[string]string{},
		seen: seen, first: map[string]step{},
	}
}

// play makes the calls of a scenario in order.
func (r *runner) play(steps []step) {
	r.t.Helper()
	for i, s := range steps {
		if s.before != nil {
			s.before()
		}
		if s.status == 0 {
			s.status = http.StatusOK
		}
		accepted := r.around != nil && s.status < http.StatusMultipleChoices
		if accepted {
			r.around(s, nil)
		}
		answer := r.call(fmt.Sprintf("step %d, %s", i, s.op), &s)
		if accepted {
			r.around(s, answer)
		}
		for pair := range strings.FieldsSeq(s.save) {
			name, path, _ := strings.Cut(pair, "=")
			r.saved[name] = textAt(answer, path)
			if r.saved[name] == "" && !r.loose {
				r.t.Fatalf("step %d, %s: the answer has no %s", i, s.op, path)
			}
		}
	}
}

// textAt returns the value at a path in JSON, "" if there is none.
func textAt(raw []byte, path string) string {
	var node any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if d.Decode(&node) != nil {
		return ""
	}
	for name := range strings.SplitSeq(path, ".") {
		node = child(node, name)
	}
	if node == nil {
		return ""
	}
	return fmt.Sprint(node)
}

// fill replaces the placeholders of a text.
func (r *runner) fill(text string) string {
	for name, value := range r.saved {
		text = strings.ReplaceAll(text, "{{"+name+"}}", value)
	}
	return text
}

// request returns the request of a step.
func (r *runner) request(o *operation, s *step) *http.Request {
	path := o.path
	for value := range strings.FieldsSeq(r.fill(s.path)) {
		begin, end := strings.IndexByte(path, '{'), strings.IndexByte(path, '}')
		path = path[:begin] + url.PathEscape(strings.ReplaceAll(value, "_SPACE_", " ")) + path[end+1:]
	}
	if s.query != "" {
		path += "?" + r.fill(s.query)
	}
	var body io.Reader
	if s.body != "" {
		body = strings.NewReader(r.fill(s.body))
	}
	q, err := http.NewRequestWithContext(r.t.Context(), o.method, "http://"+r.broker.HTTP+path, body)
	if err != nil {
		r.t.Fatal(err)
	}
	key := s.key
	if key == "" && o.keyed {
		key = keys[o.scope]
	}
	if key != "" && key != "-" {
		q.Header.Set("Authorization", "Bearer "+key)
	}
	for line := range strings.Lines(r.fill(s.header)) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		q.Header.Set(name, value)
	}
	return q
}

// call makes one call, and returns the body of the answer.
func (r *runner) call(where string, s *step) []byte {
	r.t.Helper()
	o := r.operations[s.op]
	if o == nil {
		r.t.Fatalf("%s: there is no such operation", where)
	}
	q := r.request(o, s)
	if !refusesRequest(s.status) {
		if err := r.checkRequest(o, q, r.fill(s.body)); err != nil {
			r.t.Errorf("%s: the request does not fit the document: %v", where, err)
		}
	}
	resp, err := httpClient.Do(q)
	if err != nil {
		r.t.Fatalf("%s: %v", where, err)
	}
	defer resp.Body.Close()
	text, err := readBody(resp)
	if err != nil {
		r.t.Fatalf("%s: %v", where, err)
	}
	if r.loose {
		return text
	}
	if resp.StatusCode != s.status || s.code != "" && textAt(text, "error.code") != s.code {
		r.t.Errorf("%s: %s %s: %d %.300s, want %d %s", where, q.Method, q.URL.Path, resp.StatusCode, text, s.status, s.code)
		return text
	}
	if err := r.checkResponse(o, resp, text); err != nil {
		r.t.Errorf("%s: the answer does not fit the document: %d %.600s: %v", where, resp.StatusCode, text, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen[o.id] == nil {
		r.seen[o.id] = map[int]bool{}
	}
	r.seen[o.id][resp.StatusCode] = true
	if _, found := r.first[o.id]; !found && resp.StatusCode < http.StatusMultipleChoices {
		again := *s
		again.path, again.query, again.body, again.header = r.fill(s.path), r.fill(s.query), r.fill(s.body), r.fill(s.header)
		r.first[o.id] = again
	}
	return text
}

// readBody reads the body of an answer, and of a stream the first event.
func readBody(resp *http.Response) ([]byte, error) {
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return io.ReadAll(resp.Body)
	}
	var text []byte
	for !bytes.HasSuffix(text, []byte("\n\n")) {
		chunk := make([]byte, 4096)
		n, err := resp.Body.Read(chunk)
		if text = append(text, chunk[:n]...); err != nil {
			return text, err
		}
	}
	return text, nil
}

// refusesRequest reports whether a call with this status may not fit the document.
func refusesRequest(status int) bool {
	return status == http.StatusBadRequest || status == http.StatusRequestEntityTooLarge || status == http.StatusUnauthorized
}

// checkRequest returns an error unless the parameters and the body of a request are as described.
func (r *runner) checkRequest(o *operation, q *http.Request, body string) error {
	known := url.Values{}
	for _, p := range o.parameters(r.document) {
		parameter := r.document.object(p)
		name := parameter["name"].(string)
		values := q.Header.Values(name)
		switch parameter["in"] {
		case "path":
			continue // the names of this package are valid
		case "query":
			known[name] = nil
			values = q.URL.Query()[name]
		}
		if len(values) == 0 {
			if parameter["required"] == true {
				return fmt.Errorf("the parameter %s is missing", name)
			}
			continue
		}
		if err := r.checkParameter(p, values); err != nil {
			return err
		}
	}
	for name := range q.URL.Query() {
		if _, found := known[name]; !found {
			return fmt.Errorf("the parameter %s is not described", name)
		}
	}
	media := o.body(r.document)
	described := r.document.get(o.at.at("requestBody")) != nil
	switch {
	case body == "" && r.document.get(o.at.at("requestBody", "required")) == true:
		return fmt.Errorf("the body is missing")
	case body != "" && !described:
		return fmt.Errorf("the body is not described")
	case body == "" || r.document.get(media) == nil:
		return nil
	}
	return r.document.check(r.t, media, []byte(body))
}

// checkParameter compares the values of a parameter with its schema.
func (r *runner) checkParameter(p pointer, values []string) error {
	schema := r.document.schema(r.t, p.at("schema"))
	kind := r.document.object(p.at("schema"))["type"]
	if kind == "array" {
		list := make([]any, len(values))
		for i, v := range values {
			list[i] = v
		}
		return schema.Validate(list)
	}
	var value any = values[0]
	if kind == "integer" || kind == "boolean" {
		value, _ = jsonschema.UnmarshalJSON(strings.NewReader(values[0]))
	}
	return schema.Validate(value)
}

// checkResponse returns an error unless the status, the headers and the body of an answer are as
// described.
func (r *runner) checkResponse(o *operation, resp *http.Response, text []byte) error {
	p := o.response(r.document, resp.StatusCode)
	if p == "" {
		return fmt.Errorf("the status is not described: %v", o.statuses())
	}
	response := r.document.object(p)
	headers, _ := response["headers"].(object)
	for name := range headers {
		value := resp.Header.Get(name)
		if value == "" {
			return fmt.Errorf("the header %s is missing", name)
		}
		if err := r.checkParameter(r.document.follow(p.at("headers", name)), []string{value}); err != nil {
			return err
		}
	}
	if codes, found := response["x-error-codes"].([]any); found && !slices.Contains(codes, any(textAt(text, "error.code"))) {
		return fmt.Errorf("the code is none of %v", codes)
	}
	content, _ := response["content"].(object)
	if content == nil {
		if len(text) > 0 {
			return fmt.Errorf("the body is not described")
		}
		return nil
	}
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case err != nil:
		return err
	case content[kind] == nil:
		return fmt.Errorf("the content type %s is not described", kind)
	case kind != "application/json":
		return nil
	}
	return r.document.check(r.t, p.at("content", kind, "schema"), text)
}

// provoke makes the calls that fail alike for all operations: without a key, with a key of another
// scope, and with a body or a parameter that the document does not have.
func (r *runner) provoke() {
	other := map[string]string{"push": keyRead, "read": keyPush, "admin": keyRead}
	for id, o := range r.operations {
		s, found := r.first[id]
		if !found {
			continue
		}
		fails := func(status int, code string, change func(*step)) {
			if o.response(r.document, status) == "" || r.seen[id][status] {
				return
			}
			again := s
			again.status, again.code = status, code
			change(&again)
			r.call(fmt.Sprintf("%s with status %d", id, status), &again)
		}
		if o.keyed {
			fails(http.StatusUnauthorized, "unauthorized", func(s *step) { s.key = "-" })
		}
		if o.scope != "" {
			fails(http.StatusForbidden, "forbidden", func(s *step) { s.key = other[o.scope] })
		}
		_, hasBody := o.node["requestBody"]
		fails(http.StatusBadRequest, "bad_request", func(s *step) {
			switch {
			case hasBody:
				s.body = `{"not_a_member":1}`
			case strings.Contains(r.parameterNames(o), " limit "):
				s.query = "limit=-1"
			case s.path != "":
				_, rest, _ := strings.Cut(s.path, " ")
				s.path = "a_SPACE_b " + rest
			}
		})
		if hasBody {
			fails(http.StatusRequestEntityTooLarge, "too_large", func(s *step) { s.body = `{"` + strings.Repeat("x", 16<<20) })
		}
	}
}

// parameterNames returns the names of the parameters, each between spaces.
func (r *runner) parameterNames(o *operation) string {
	names := " "
	for _, p := range o.parameters(r.document) {
		names += r.document.object(p)["name"].(string) + " "
	}
	return names
}

// unavailable repeats the first accepted call of all operations that can be unavailable. The store
// must be away.
func (r *runner) unavailable() {
	var wait sync.WaitGroup
	for id, o := range r.operations {
		s, found := r.first[id]
		if !found || o.response(r.document, http.StatusServiceUnavailable) == "" {
			continue
		}
		wait.Go(func() {
			s.status, s.code = http.StatusServiceUnavailable, "unavailable"
			if !strings.HasPrefix(o.path, "/v1") {
				s.code = ""
			}
			r.call(id+" without a store", &s)
		})
	}
	wait.Wait()
}

// report fails the test for each documented status that no call had, except those in unprovoked.
func (r *runner) report(unprovoked map[string]string) {
	for id, o := range r.operations {
		for _, text := range o.statuses() {
			status, _ := strconv.Atoi(text)
			why, excused := unprovoked[id+" "+text]
			switch {
			case excused && r.seen[id][status]:
				r.t.Errorf("%s: the status %s is excused (%s), but a call had it", id, text, why)
			case !excused && !r.seen[id][status]:
				r.t.Errorf("%s: no call had the status %s", id, text)
			}
		}
	}
}
