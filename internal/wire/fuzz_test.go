package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
)

func FuzzDecodeRequest(f *testing.F) {
	f.Add([]byte(`{"type":"subscribe","channel":"news","after":7,"ref":1}`))
	f.Add([]byte(`{"type":"publish","channel":"a","data":{"b":[1,"\u2028"]}}`))
	f.Add([]byte(`{"type":"ping","ref":"x"}`))
	f.Add([]byte(strings.Repeat("[", 100)))
	f.Fuzz(func(t *testing.T, raw []byte) {
		req, err := DecodeRequest(raw)
		if err != nil {
			if own, ok := errors.AsType[*Error](err); !ok || own.Code != BadRequest || own.Message == "" {
				t.Fatalf("not a refusal: %v", err)
			}
			return
		}
		if len(req.Data) > 0 {
			data, err := CompactData(req.Data, len(raw))
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

func FuzzDecodeEvent(f *testing.F) {
	f.Add([]byte(`{"type":"message","channel":"news","id":735325130218701,"data":{"a":1}}`))
	f.Add([]byte(`{"type":"history","ref":3,"messages":[{"id":1,"data":null}],"more":true}`))
	f.Add([]byte(`{"type":"closing","code":"draining","reconnect":true,"after_ms":1840}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		e, err := DecodeEvent(raw)
		if err != nil {
			if _, ok := errors.AsType[*Error](err); !ok {
				t.Fatalf("not a refusal: %v", err)
			}
			return
		}
		frame := e.Encode()
		back, err := DecodeEvent(frame.JSON())
		if err != nil || back.Type != e.Type || back.Ref != e.Ref {
			t.Fatalf("%s becomes %s, %v", raw, frame.JSON(), err)
		}
		if line := frame.Line(); bytes.IndexByte(line, '\n') != len(line)-1 {
			t.Fatalf("not one line: %q", line)
		}
	})
}

func FuzzEncodeMessage(f *testing.F) {
	f.Add("news", int64(735325130218701), []byte(`{"a": 1}`))
	f.Add(`"\`, int64(-1), []byte("\"\u2028\""))
	f.Add("", int64(0), []byte("[\n]"))
	f.Fuzz(func(t *testing.T, channel string, id int64, data []byte) {
		if channel != "" && CheckName("channel", channel) != nil {
			return
		}
		compact, err := CompactData(data, 1<<20)
		if err != nil {
			return
		}
		checkMessage(t, channel, id, compact)
	})
}

// FuzzClientID: no two pairs of user and client share an id, and what is no pair has none.
func FuzzClientID(f *testing.F) {
	f.Add("alice", "phone")
	f.Add("", "c-1")
	f.Add("a/b/", "c")
	f.Add("a", "b/c")
	f.Fuzz(func(t *testing.T, user, client string) {
		good := (user == "" || CheckName("user", user) == nil) && CheckClientPart(client) == nil
		id := ClientID(user, client)
		if good && (UserOf(id) != user || ClientPart(id) != client || CheckClientID(id) != nil) {
			t.Fatalf("%q and %q are %q, which is %q of %q", user, client, id, ClientPart(id), UserOf(id))
		}
		if CheckClientID(id) == nil && ClientID(UserOf(id), ClientPart(id)) != id {
			t.Fatalf("%q is %q of %q", id, ClientPart(id), UserOf(id))
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

func BenchmarkEncodeMessage(b *testing.B) {
	b.ReportAllocs()
	b.SetBytes(int64(len(sample)))
	for b.Loop() {
		EncodeMessage("news/sport", 735325130218701, sample)
	}
}
