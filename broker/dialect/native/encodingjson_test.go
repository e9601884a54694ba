package native

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"switchboard/internal/payload"
	"switchboard/internal/wire"
)

// The code that avoids encoding/json must decode and encode exactly as encoding/json does.

// deep returns lists of a depth.
func deep(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }

// FuzzScan checks that scan accepts only valid requests, and decodes them as encoding/json does.
func FuzzScan(f *testing.F) {
	for _, seed := range []string{
		`{"type":"connect","ref":1,"client":"phone","user":"al","token":"t","ack":"auto","instance":"i","attempt":3,"after":735325130218600}`,
		`{"type":"subscribe","ref":2,"channel":"news","after":0} `, ` { "type" : "ack" , "id" : 17 } `,
		`{"type":"ping"}`, `{"Type":"ping"}`, `{"type":"ping","type":"pong"}`, `{"ref":null}`, `{"ref":01}`, `{"ref":-1}`,
		`{"ref":1e3}`, `{"ref":1.0}`, `{"after":null}`, `{"id":99999999999999999999}`, `{"type":"a\u0062"}`, `{}`, `{"type":"x"}}`,
		`{"type":"publish","ref":1,"channel":"a","key":"k","data":{"a":[1]},"set":{"n":{"x": 1},"m":[]},"ttl":1.5,"own":true}`,
		`{"del":["a","b"],"touch":["c"],"add":{"n":1},"if":{"n":0,"m":true},"durable":false}`, `{"set":{"a":1},"set":{"b":2}}`,
		`{"type":"request","method":"room.join","data":{}}`, `{"state":true,"held":true,"presence":true}`, `{"state":false}`,
		`{"set":{"a":1,"a":2}}`, `{"set":null,"del":[]}`, `{"ttl":1e999}`, `{"set":{"a":` + deep(62) + `}}`, `{"set":{"a":` + deep(63) + `}}`,
		`{"data":` + deep(63) + `}`, `{"data":` + deep(64) + `}`, `{"type":"x",}`, "{\"type\":\"é\",\"channel\":\"\x7f\"}", `{"limit":3}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var got, want wire.Request
		if !scan(&got, raw) {
			return
		}
		if err := payload.CheckText(raw); err != nil {
			t.Fatalf("scan accepts %q, but: %v", raw, err)
		}
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatalf("scan accepts %q, but: %v", raw, err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%q is %+v, want %+v", raw, got, want)
		}
	})
}

// TestScanAcceptsCommonRequests checks that common requests need no encoding/json.
func TestScanAcceptsCommonRequests(t *testing.T) {
	for _, raw := range []string{
		`{"type":"connect","ref":1,"client":"phone","user":"al","token":"t","ack":"auto","instance":"i","attempt":3,"after":735325130218600}`,
		`{"type":"subscribe","ref":2,"channel":"news","after":0}`,
		`{"type":"ack","id":735325130218600}`, `{"type":"pong"}`, ` { "type" : "ping", "ref": 7 } `,
		`{"type":"publish","channel":"room:1","set":{"p/1/pos":{"x":1,"y":2}},"ref":1}`,
		`{"type":"publish","channel":"room:1","data":{"text":"a \"b\""},"key":"k"}`,
		`{"type":"request","ref":1,"method":"room.join","data":{"room":"r1"}}`,
		`{"type":"subscribe","channel":"room:r1","state":true}`,
	} {
		if r := new(wire.Request); !scan(r, []byte(raw)) {
			t.Errorf("scan does not accept %s", raw)
		}
	}
}

func BenchmarkWithoutEncodingJSON(b *testing.B) {
	raw := []byte(`{"type":"connect","ref":1,"client":"phone","instance":"app","attempt":3,"after":735325130218600}`)
	set := []byte(`{"type":"publish","channel":"room:r250","set":{"p/1/pos":{"x":123456,"y":654321}}}`)
	id, queued := int64(735325130218600), 0
	e := wire.Event{Type: wire.TypeConnected, Ref: wire.RefOf(1), Client: "phone", Server: "b1-7f3a", Ping: 25, Queued: &queued, ID: &id}
	change := wire.Event{Type: wire.TypeMessage, Channel: "room:7", ID: &id, StateEvent: &wire.StateEvent{
		Set: map[string]json.RawMessage{"seat/17": json.RawMessage(`{"text":"a value of an ordinary size, about ninety bytes, with a few more words here"}`)},
	}}
	var buf []byte
	for name, f := range map[string]func(){
		"scan":             func() { scan(new(wire.Request), raw) },
		"unmarshal":        func() { _ = json.Unmarshal(raw, new(wire.Request)) },
		"scan a change":    func() { scan(new(wire.Request), set) },
		"unmarshal it":     func() { _ = json.Unmarshal(set, new(wire.Request)) },
		"append":           func() { buf = AppendEvent(buf[:0], &e) },
		"marshal":          func() { buf = appendAny(buf[:0], e) },
		"append a change":  func() { buf = AppendEvent(buf[:0], &change) },
		"marshal a change": func() { buf = appendAny(buf[:0], change) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f()
			}
		})
	}
}
