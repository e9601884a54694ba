package spec_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"switchboard/broker/api/spec"
	"switchboard/broker/hook"
	"switchboard/events"
	"switchboard/webhook"
)

// TestEventTypes compares the types of the events of the document with those of package events.
func TestEventTypes(t *testing.T) {
	d := parse(t, spec.OpenAPI(), true)
	var described []string
	for _, ref := range d.object("/components/schemas/Event")["oneOf"].([]any) {
		p := pointer(strings.TrimPrefix(ref.(object)["$ref"].(string), "#"))
		kind := d.get(p.at("properties", "type")).(object)
		if only, found := kind["const"].(string); found {
			described = append(described, only)
		}
		list, _ := kind["enum"].([]any)
		for _, one := range list {
			described = append(described, one.(string))
		}
	}
	var known []string
	for _, k := range events.Kinds {
		known = append(known, string(k))
	}
	slices.Sort(described)
	slices.Sort(known)
	if !slices.Equal(described, known) {
		t.Errorf("the document has %v, the broker sends %v", described, known)
	}
}

// TestEveryEventHasAnExample looks for the types of events in the examples.
func TestEveryEventHasAnExample(t *testing.T) {
	d := parse(t, spec.OpenAPI(), true)
	examples, err := json.Marshal(d.get("/webhooks/events/post/requestBody/content/application~1json/examples"))
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range events.Kinds {
		if !strings.Contains(string(examples), `"type":"`+string(k)+`"`) {
			t.Errorf("%s has no example", k)
		}
	}
}

// TestQuestions compares what the broker sends to hooks with the document.
func TestQuestions(t *testing.T) {
	d := parse(t, spec.OpenAPI(), true)
	info := json.RawMessage(`{"name":"Alice"}`)
	for _, q := range []hook.Question{
		{Hook: hook.Connect, Client: "c-1", Address: "192.0.2.7:51312"},
		{Hook: hook.Connect, Client: "alice/phone", User: "alice", Address: "192.0.2.7:51312", Info: info, Refresh: true},
		{Hook: hook.Subscribe, Client: "alice/phone", User: "alice", Address: "192.0.2.7:51312", Info: info, Channel: "news"},
	} {
		text, err := json.Marshal(q)
		if err == nil {
			err = d.check(t, pointer("").at("webhooks", string(q.Hook), "post", "requestBody", "content", "application/json", "schema"), text)
		}
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestSignatureHeaders compares the headers of a signed POST with the document.
func TestSignatureHeaders(t *testing.T) {
	d := parse(t, spec.OpenAPI(), true)
	header := http.Header{}
	webhook.Sign([]string{strings.Repeat("a", 32), strings.Repeat("b", 32)}, header, []byte("{}"), time.Now())
	for _, name := range []string{"Timestamp", "Signature"} {
		p := d.object(pointer("").at("components", "parameters", name))
		value := header.Get(p["name"].(string))
		if pattern := p["schema"].(object)["pattern"].(string); !regexp.MustCompile(pattern).MatchString(value) {
			t.Errorf("%s: %q does not fit %s", p["name"], value, pattern)
		}
	}
}
