package native

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"switchboard/internal/payload"
	"switchboard/internal/wire"
)

func ptr[T any](v T) *T { return &v }

func TestDecodeRequest(t *testing.T) {
	tests := map[string]struct {
		raw  string
		want wire.Request
	}{
		"type only":      {`{"type":"ping"}`, wire.Request{Type: "ping"}},
		"white space":    {" {\n\"type\" : \"ping\"\t}\r\n", wire.Request{Type: "ping"}},
		"unknown fields": {`{"type":"ping","x":[{}],"y":null}`, wire.Request{Type: "ping"}},
		"unknown type":   {`{"type":"dance","ref":1}`, wire.Request{Type: "dance", Ref: wire.RefOf(1)}},
		"connect": {
			`{"type":"connect","token":"t","client":"c","user":"u","ack":"auto"}`,
			wire.Request{Type: "connect", Token: "t", Client: "c", User: "u", Ack: "auto"},
		},
		"after":        {`{"type":"subscribe","channel":"a","after":0}`, wire.Request{Type: "subscribe", Channel: "a", After: ptr(int64(0))}},
		"no after":     {`{"type":"subscribe","channel":"a","after":null}`, wire.Request{Type: "subscribe", Channel: "a"}},
		"large id":     {`{"type":"ack","id":9007199254740993}`, wire.Request{Type: "ack", ID: 9007199254740993}},
		"ref 0":        {`{"type":"ping","ref":0}`, wire.Request{Type: "ping", Ref: wire.RefOf(0)}},
		"negative ref": {`{"type":"ping","ref":-7}`, wire.Request{Type: "ping", Ref: wire.RefOf(-7)}},
		"null ref":     {`{"type":"ping","ref":null}`, wire.Request{Type: "ping"}},
		"data": {
			`{"type":"publish","channel":"a","data":{"b":[1, "\n"]}}`,
			wire.Request{Type: "publish", Channel: "a", Data: json.RawMessage(`{"b":[1, "\n"]}`)},
		},
		"null data": {`{"type":"publish","data":null}`, wire.Request{Type: "publish", Data: json.RawMessage(`null`)}},
		"braces in text": {
			`{"type":"ping","token":"` + strings.Repeat(`[{\"`, 100) + `"}`,
			wire.Request{Type: "ping", Token: strings.Repeat(`[{"`, 100)},
		},
		"deepest": {
			`{"type":"x","data":` + strings.Repeat("[", payload.MaxDepth-1) + strings.Repeat("]", payload.MaxDepth-1) + `}`,
			wire.Request{Type: "x", Data: json.RawMessage(strings.Repeat("[", payload.MaxDepth-1) + strings.Repeat("]", payload.MaxDepth-1))},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			raw := []byte(test.raw)
			got, err := DecodeRequest(raw)
			if err != nil {
				t.Fatal(err)
			}
			clear(raw) // a transport reuses its buffer
			if !reflect.DeepEqual(got, test.want) {
				t.Fatalf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

// TestDecodeRequestRefuses checks that an error says what is wrong and where.
func TestDecodeRequestRefuses(t *testing.T) {
	tests := map[string]struct{ raw, want string }{
		"nothing":             {``, "not JSON: byte 0: unexpected end of JSON input"},
		"cut off":             {`{"type":"ping"`, "not JSON: byte 14: unexpected end of JSON input"},
		"no JSON":             {`{"type":pong}`, "not JSON: byte 9: invalid character 'p' looking for beginning of value"},
		"two objects":         {`{"type":"ping"}{}`, "not JSON: byte 16: invalid character '{' after top-level value"},
		"line break":          {"{\"type\":\"a\nb\"}", `not JSON: byte 11: invalid character '\n' in string literal`},
		"an array":            {`[1]`, "a JSON object is expected, not array"},
		"a number":            {`17`, "a JSON object is expected, not number"},
		"null":                {`null`, "type: missing"},
		"no type":             {`{"ref":1}`, "type: missing"},
		"type number":         {`{"type":1}`, "type: number does not fit, expected a string"},
		"channel object":      {`{"type":"subscribe","channel":{}}`, "channel: object does not fit, expected a string"},
		"id text":             {`{"type":"ack","id":"1"}`, "id: string does not fit, expected an integer"},
		"id fraction":         {`{"type":"ack","id":1.5}`, "id: number 1.5 does not fit, expected an integer"},
		"id with 1000 digits": {`{"type":"ack","id":` + strings.Repeat("9", 1000) + `}`, "id: number " + strings.Repeat("9", 33) + " does not fit, expected an integer"},
		"id too large":        {`{"type":"ack","id":9223372036854775808}`, "id: number 9223372036854775808 does not fit, expected an integer"},
		"after text":          {`{"type":"subscribe","after":"x"}`, "after: string does not fit, expected an integer"},
		"after below zero":    {`{"type":"subscribe","after":-1}`, "after: -1 is below zero"},
		"limit true":          {`{"type":"history","limit":true}`, "limit: bool does not fit, expected an integer"},
		"ref text":            {`{"type":"ping","ref":"7"}`, `ref: "7" is not an integer`},
		"ref fraction":        {`{"type":"ping","ref":1.0}`, "ref: 1.0 is not an integer"},
		"ref exponent":        {`{"type":"ping","ref":1e3}`, "ref: 1e3 is not an integer"},
		"ref object":          {`{"type":"ping","ref":{"a":1}}`, `ref: {"a":1} is not an integer`},
		"ref long": {
			`{"type":"ping","ref":"` + strings.Repeat("x", 1000) + `"}`,
			`ref: "` + strings.Repeat("x", 39) + " is not an integer",
		},
		"too deep":          {`{"type":"x","data":` + strings.Repeat("[", payload.MaxDepth), "byte 82: nested deeper than 64 levels"},
		"too deep unclosed": {strings.Repeat("{", 1000), "byte 64: nested deeper than 64 levels"},
		"not UTF-8":         {"{\"type\":\"\xff\"}", "the message is not UTF-8"},
		"surrogate":         {"{\"type\":\"\xed\xa0\x80\"}", "the message is not UTF-8"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := DecodeRequest([]byte(test.raw))
			own, ok := errors.AsType[*wire.Error](err)
			if !ok || own.Code != wire.BadRequest || !strings.Contains(own.Message, test.want) {
				t.Fatalf("got %v, want bad_request with %q", err, test.want)
			}
		})
	}
}

func FuzzDecodeRequest(f *testing.F) {
	f.Add([]byte(`{"type":"subscribe","channel":"news","after":7,"ref":1}`))
	f.Add([]byte(`{"type":"publish","channel":"a","data":{"b":[1,"\u2028"]}}`))
	f.Add([]byte(`{"type":"ping","ref":"x"}`))
	f.Add([]byte(strings.Repeat("[", 100)))
	f.Fuzz(func(t *testing.T, raw []byte) {
		req, err := DecodeRequest(raw)
		if err != nil {
			if own, ok := errors.AsType[*wire.Error](err); !ok || own.Code != wire.BadRequest || own.Message == "" {
				t.Fatalf("not a *wire.Error: %v", err)
			}
			return
		}
		if len(req.Data) > 0 {
			data, err := payload.Compact(req.Data, len(raw))
			if err != nil {
				t.Fatalf("payload of a valid message: %v", err)
			}
			if bytes.ContainsAny(data, "\n\r") || !json.Valid(data) {
				t.Fatalf("payload %q", data)
			}
			req.Data = data
		}
		again, err := json.Marshal(req)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := DecodeRequest(again); err != nil || back.Type != req.Type || back.Ref != req.Ref || back.ID != req.ID ||
			!reflect.DeepEqual(back.After, req.After) {
			t.Fatalf("%s becomes %+v, %v", again, back, err)
		}
	})
}

var sample = []byte(`{"type":"publish","ref":12,"channel":"news/sport","data":{"title":"hello","n":[1,2,3],"text":"` +
	strings.Repeat("x", 100) + `"}}`)

func BenchmarkDecodeRequest(b *testing.B) {
	b.ReportAllocs()
	b.SetBytes(int64(len(sample)))
	for b.Loop() {
		if _, err := DecodeRequest(sample); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMessage(b *testing.B) {
	d := New(0)
	b.ReportAllocs()
	b.SetBytes(int64(len(sample)))
	for b.Loop() {
		d.Message("news/sport", 735325130218701, sample)
	}
}
