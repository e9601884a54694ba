package wire

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
)

// TestValues checks that values keep their order, and that an object may not have a name twice.
func TestValues(t *testing.T) {
	for text, want := range map[string]string{
		`{"b":1,"a":{"x":[1, 2]}}`: `{"b":1,"a":{"x":[1,2]}}`,
		`{}`:                       `{}`,
		`null`:                     `null`,
		`{"a":null}`:               `{"a":null}`,
		`{"a":1,"\u0061":2}`:       `bad_request: field a: it appears twice`,
		`[1]`:                      `bad_request: a JSON object is expected, not array`,
		`"x"`:                      `bad_request: a JSON object is expected, not string`,
	} {
		var values *Values
		err := json.Unmarshal([]byte(text), &values)
		got, _ := json.Marshal(values)
		if err != nil {
			got = []byte(JSONError(err).Error())
		}
		if string(got) != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

// TestSelector checks the forms of `state` in a subscribe.
func TestSelector(t *testing.T) {
	for text, want := range map[string]*StateRequest{
		`{"state":true}`:    {State: &Selector{}},
		`{"state":"seat/"}`: {State: &Selector{Prefix: "seat/"}},
		`{"state":""}`:      {State: &Selector{}},
		`{"state":null}`:    {},
		`{"held":true}`:     {Held: true},
		`{"state":false}`:   nil,
		`{"state":1}`:       nil,
		`{"state":{}}`:      nil,
	} {
		got := new(StateRequest)
		err := json.Unmarshal([]byte(text), got)
		if want == nil {
			if refusal, ok := errors.AsType[*Error](err); !ok || refusal.Code != BadRequest {
				t.Errorf("%s: got %v, want bad_request", text, err)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v", text, got, err)
		}
	}
}

// TestRequestsWithoutState checks that a request without state has nothing of it, and that the
// parts of a change are found.
func TestRequestsWithoutState(t *testing.T) {
	var r Request
	if err := json.Unmarshal([]byte(`{"type":"publish","channel":"a","data":1}`), &r); err != nil || r.Change != nil || r.StateRequest != nil {
		t.Errorf("got %+v, %v", r, err)
	}
	text := `{"type":"publish","channel":"a","set":{"x":1},"del":["y"],"ttl":1.5,"own":false,"of":{"x":"z"},"key":"k"}`
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(r)
	if err != nil || string(again) != `{"type":"publish","channel":"a","data":1,`+text[len(`{"type":"publish","channel":"a",`):] {
		t.Errorf("got %s, %v", again, err)
	}
}

// FuzzValues checks that values are the members of the object.
func FuzzValues(f *testing.F) {
	for _, text := range []string{`{"a":1}`, `{"a":1,"a":2}`, `null`, `{"":[{}]}`, `{"\ud800":"x"}`, `[]`, `{"a":1}}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var values Values
		if json.Unmarshal(text, &values) != nil {
			return
		}
		var members map[string]json.RawMessage
		if err := json.Unmarshal(text, &members); err != nil || len(members) != len(values) {
			t.Fatalf("%s: got %d values, want %d: %v", text, len(values), len(members), err)
		}
		for _, one := range values {
			if string(members[one.Name]) != string(one.JSON) {
				t.Errorf("%s: %q is %s, want %s", text, one.Name, one.JSON, members[one.Name])
			}
		}
		var again Values
		encoded, err := json.Marshal(values)
		if err != nil || json.Unmarshal(encoded, &again) != nil || len(again) != len(values) {
			t.Errorf("%s becomes %s, and then %d values: %v", text, encoded, len(again), err)
		}
	})
}

// FuzzSelector checks that a selector becomes the same selector again.
func FuzzSelector(f *testing.F) {
	for _, text := range []string{`true`, `false`, `"seat/"`, `""`, `1`, `null`, ` true`, `{}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var s, again Selector
		if json.Unmarshal(text, &s) != nil {
			return
		}
		encoded, err := json.Marshal(s)
		if err != nil || json.Unmarshal(encoded, &again) != nil || again != s {
			t.Errorf("%s is %+v, then %s and %+v: %v", text, s, encoded, again, err)
		}
	})
}
