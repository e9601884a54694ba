package wire

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// The short ways around encoding/json must say the same as it does.

func FuzzScan(f *testing.F) {
	for _, seed := range []string{
		`{"type":"connect","ref":1,"client":"phone","user":"al","token":"t","ack":"auto","instance":"i","attempt":3,"after":735325130218600}`,
		`{"type":"subscribe","ref":2,"channel":"news","after":0} `, ` { "type" : "ack" , "id" : 17 } `,
		`{"type":"ping"}`, `{"Type":"ping"}`, `{"type":"ping","type":"pong"}`, `{"ref":null}`, `{"ref":01}`, `{"ref":-1}`,
		`{"ref":1e3}`, `{"ref":1.0}`, `{"after":null}`, `{"id":99999999999999999999}`, `{"type":"a\u0062"}`, `{}`, `{"type":"x"}}`,
		`{"type":"publish","data":{"a":[1]}}`, `{"type":"x",}`, "{\"type\":\"é\",\"channel\":\"\x7f\"}", `{"limit":3}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var got, want Request
		if !got.scan(raw) {
			return
		}
		if err := CheckText(raw); err != nil {
			t.Fatalf("%q was read although %v", raw, err)
		}
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatalf("%q was read although %v", raw, err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%q is %+v, want %+v", raw, got, want)
		}
	})
}

func TestScanTakesTheOrdinary(t *testing.T) {
	for _, raw := range []string{
		`{"type":"connect","ref":1,"client":"phone","user":"al","token":"t","ack":"auto","instance":"i","attempt":3,"after":735325130218600}`,
		`{"type":"subscribe","ref":2,"channel":"news","after":0}`,
		`{"type":"ack","id":735325130218600}`, `{"type":"pong"}`, ` { "type" : "ping", "ref": 7 } `,
	} {
		if r := new(Request); !r.scan([]byte(raw)) {
			t.Errorf("%s is left to encoding/json", raw)
		}
	}
}

// FuzzScanner holds what the scanner takes against encoding/json.
func FuzzScanner(f *testing.F) {
	for _, seed := range []string{
		`{"a":1,"b":[true,false,null,-0.5e+7,"x"],"c":{},"d":[]}`, "{ \"a\" :\t[ 1 ,\r\n{ } , [ ] ] }\n", `"\u00e9\n\"\\é"`, "\"\xff\"", `"\u00g0"`, `"\x"`, "\"\n\"",
		`1`, `-`, `01`, `1.`, `1e`, `-0`, `tru`, `nullx`, `[1,]`, `[,1]`, `{"a":1,}`, `{,}`, `{"a"}`, `{a:1}`, `[1}`, `{"a":1]`, `[1 2]`, `"`, `"\`, ``, ` `, `1 2`, "\xff",
		` "näws" `, "\"\x7f\"", `123456789012345678 `, `1234567890123456789 `, `"a" : 1`, `"a":1`, `7,`, `7.0,`, "\x00",
		strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth), strings.Repeat(`{"a":`, MaxDepth) + "1" + strings.Repeat("}", MaxDepth),
		strings.Repeat("[", MaxDepth+1) + strings.Repeat("]", MaxDepth+1), strings.Repeat("[{\"a\":", MaxDepth/2) + "1" + strings.Repeat("}]", MaxDepth/2),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		checkValue(t, text)
		checkText(t, text)
		checkInteger(t, text)
		checkField(t, text)
	})
}

// checkValue: Value takes what is valid, and says how it is written.
func checkValue(t *testing.T, text []byte) {
	s := NewScanner(text)
	value, compact, ok := s.Value()
	if !ok {
		if _, err := compactData(text); err == nil {
			t.Fatalf("%q is a value", text)
		}
		return
	}
	left := text[len(text)-s.Left():]
	want, err := compactData(value)
	switch {
	case err != nil:
		t.Fatalf("%q was taken of %q, although %v", value, text, err)
	case compact != bytes.Equal(want, value), string(AppendCompact(nil, value)) != string(want):
		t.Fatalf("%q, compact: %v, is %q; want %q", value, compact, AppendCompact(nil, value), want)
	case s.End() != (len(bytes.TrimLeft(left, " \t\r\n")) == 0):
		t.Fatalf("the end of %q is %v", left, s.End())
	}
	if _, err := compactData(text); err == nil && !s.End() {
		t.Fatalf("only %q was taken of %q", value, text)
	}
}

// before is the part of text that s has taken.
func before(s *Scanner, text []byte) []byte { return text[:len(text)-s.Left()] }

// checkText: Text takes each string that has no escapes.
func checkText(t *testing.T, text []byte) {
	s := NewScanner(text)
	got, ok := s.Text()
	var want string
	if ok {
		if err := json.Unmarshal(before(&s, text), &want); err != nil || string(got) != want || CheckText(got) != nil {
			t.Fatalf("%q of %q, want %q, %v", got, text, want, err)
		}
	} else if _, err := compactData(text); err == nil && json.Unmarshal(text, &want) == nil && !bytes.ContainsAny(text, "\\n") {
		t.Fatalf("%q was not taken", text)
	}
}

// checkInteger: Integer takes each whole number of up to 18 digits that has something after it.
func checkInteger(t *testing.T, text []byte) {
	text = append(bytes.Clone(text), ' ')
	s := NewScanner(text)
	got, ok := s.Integer()
	var want int64
	if ok {
		if err := json.Unmarshal(before(&s, text), &want); err != nil || got != want {
			t.Fatalf("%d of %q, want %d, %v", got, text, want, err)
		}
	} else if json.Unmarshal(text, &want) == nil && want < 1e18 && !bytes.ContainsAny(text, "-n") {
		t.Fatalf("%q was not taken", text)
	}
}

// checkField: a name that Field takes is one of encoding/json.
func checkField(t *testing.T, text []byte) {
	s := NewScanner(text)
	name, ok := s.Field('{')
	if !ok {
		return
	}
	var want map[string]int
	whole := append(bytes.Clone(before(&s, text)), "1}"...)
	if err := json.Unmarshal(whole, &want); err != nil || want[string(name)] != 1 {
		t.Fatalf("%q of %q, want %v, %v", name, text, want, err)
	}
}

func FuzzAppend(f *testing.F) {
	f.Add("connected", int64(1), "phone", "al", int64(5), true, 25, "no room <b> for \"x\"\n\u2028 \x7f \xff é")
	f.Add("closing", int64(-1), "", "", int64(0), false, 0, "")
	f.Fuzz(func(t *testing.T, typ string, ref int64, client, user string, id int64, flag bool, number int, message string) {
		for _, e := range []Event{
			{Type: typ, Ref: RefOf(ref), Client: client, User: user, Secret: user, Server: message, Ping: number, Queued: &number, ID: &id},
			{Type: typ, Channel: client, After: &ref, ID: &id, Recovered: &flag, More: flag},
			{Type: typ, Code: user, Message: message, Reconnect: &flag, AfterMS: id},
		} {
			got, want := e.Encode(), e.marshal()
			if string(got.WebSocket()) != string(want.WebSocket()) || string(got.Line()) != string(want.Line()) {
				t.Fatalf("%s, want %s", got.JSON(), want.JSON())
			}
		}
	})
}

func BenchmarkShort(b *testing.B) {
	raw := []byte(`{"type":"connect","ref":1,"client":"phone","instance":"app","attempt":3,"after":735325130218600}`)
	id, queued := int64(735325130218600), 0
	e := Event{Type: TypeConnected, Ref: RefOf(1), Client: "phone", Server: "b1-7f3a", Ping: 25, Queued: &queued, ID: &id}
	for name, f := range map[string]func(){
		"scan":      func() { new(Request).scan(raw) },
		"unmarshal": func() { _ = json.Unmarshal(raw, new(Request)) },
		"append":    func() { e.Encode() },
		"marshal":   func() { e.marshal() },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f()
			}
		})
	}
}
