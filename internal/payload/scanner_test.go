package payload

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// FuzzScanner compares each method of Scanner with encoding/json.
func FuzzScanner(f *testing.F) {
	for _, seed := range []string{
		` 0`, `{"a":1,"b":[true,false,null,-0.5e+7,"x"],"c":{},"d":[]}`, "{ \"a\" :\t[ 1 ,\r\n{ } , [ ] ] }\n", `"\u00e9\n\"\\é"`, "\"\xff\"", `"\u00g0"`, `"\x"`, "\"\n\"",
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
		quoted := `"` + string(text) + `"`
		if encoded, err := json.Marshal(string(text)); IsPlain(string(text)) && !bytes.ContainsAny(text, "<>&") && string(encoded) != quoted {
			t.Fatalf("%q is %s in JSON: %v", text, encoded, err)
		}
	})
}

// checkValue checks that Value reads each valid value, and knows whether it is compact.
func checkValue(t *testing.T, text []byte) {
	if slow, err := appendSlowly(nil, text); IsCompact(text) != (err == nil && bytes.Equal(slow, text)) {
		t.Fatalf("%q is compact: %v", text, IsCompact(text))
	}
	s := NewScanner(text)
	value, compact, ok := s.Value()
	if !ok {
		if _, err := appendSlowly(nil, text); err == nil {
			t.Fatalf("Value does not read %q", text)
		}
		return
	}
	left := text[len(text)-s.Left():]
	want, err := appendSlowly(nil, value)
	switch {
	case err != nil:
		t.Fatalf("Value reads %q from %q, but: %v", value, text, err)
	case compact != bytes.Equal(want, value), string(AppendCompact(nil, value)) != string(want):
		t.Fatalf("%q, compact: %v, is %q; want %q", value, compact, AppendCompact(nil, value), want)
	case s.End() != (len(bytes.TrimLeft(left, " \t\r\n")) == 0):
		t.Fatalf("the end of %q is %v", left, s.End())
	}
	if _, err := appendSlowly(nil, text); err == nil && !s.End() {
		t.Fatalf("Value reads only %q from %q", value, text)
	}
}

// consumed returns the part of text that s has read.
func consumed(s *Scanner, text []byte) []byte { return text[:len(text)-s.Left()] }

// checkText checks that Text reads each string without escapes.
func checkText(t *testing.T, text []byte) {
	s := NewScanner(text)
	got, ok := s.Text()
	var want string
	if ok {
		if err := json.Unmarshal(consumed(&s, text), &want); err != nil || string(got) != want || CheckText(got) != nil {
			t.Fatalf("%q of %q, want %q, %v", got, text, want, err)
		}
	} else if _, err := appendSlowly(nil, text); err == nil && json.Unmarshal(text, &want) == nil && !bytes.ContainsAny(text, "\\n") {
		t.Fatalf("%q was not read", text)
	}
}

// checkInteger checks that Integer reads each integer of up to 18 digits that is not the end of the
// text.
func checkInteger(t *testing.T, text []byte) {
	text = append(bytes.Clone(text), ' ')
	s := NewScanner(text)
	got, ok := s.Integer()
	var want int64
	if ok {
		if err := json.Unmarshal(consumed(&s, text), &want); err != nil || got != want {
			t.Fatalf("%d of %q, want %d, %v", got, text, want, err)
		}
	} else if json.Unmarshal(text, &want) == nil && want < 1e18 && !bytes.ContainsAny(text, "-n") {
		t.Fatalf("%q was not read", text)
	}
}

// checkField checks that encoding/json reads the same name as Field.
func checkField(t *testing.T, text []byte) {
	s := NewScanner(text)
	name, ok := s.Field('{')
	if !ok {
		return
	}
	var want map[string]int
	whole := append(bytes.Clone(consumed(&s, text)), "1}"...)
	if err := json.Unmarshal(whole, &want); err != nil || want[string(name)] != 1 {
		t.Fatalf("%q of %q, want %v, %v", name, text, want, err)
	}
}
