package state

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"switchboard/internal/payload"
)

var nameSyntax = regexp.MustCompile(`\A\${0,2}[A-Za-z0-9._:@/%-]+\z`)

// FuzzCheckName compares CheckName with a regular expression, and checks that each beginning of a
// name is a prefix, and that names stand in JSON as they are.
func FuzzCheckName(f *testing.F) {
	for _, name := range []string{"", "a", "$max/member/", "$$n/1", "$", "$$", "$$$x", "a$", "seat/A12", "a b", "é", "a\n", "x%2F:@-._", strings.Repeat("x", 129)} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		err := CheckName(name)
		if valid := nameSyntax.MatchString(name) && len(name) <= MaxName; valid != (err == nil) {
			t.Fatalf("%q: got %v, valid is %v", name, err, valid)
		}
		if err != nil {
			return
		}
		for i := range len(name) + 1 {
			if err := CheckPrefix(name[:i]); err != nil {
				t.Errorf("%q is a beginning of %q: %v", name[:i], name, err)
			}
		}
		if text, _ := json.Marshal(name); string(text) != `"`+name+`"` {
			t.Errorf("%q is %s in JSON", name, text)
		}
		if group := Group(name); !strings.HasPrefix(name, group) || strings.Count(group, "/") > 1 {
			t.Errorf("%q is in group %q", name, group)
		}
	})
}

// FuzzEscape checks that a text can be read back from its escaped form, and that this is a part of
// a name.
func FuzzEscape(f *testing.F) {
	for _, text := range []string{"", "amy", "a/b", "50%", "$x", "é\x00\xff", "a b+c"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		escaped := Escape(text)
		if back, err := url.PathUnescape(escaped); err != nil || back != text {
			t.Errorf("%q became %q, and then %q: %v", text, escaped, back, err)
		}
		if !regexp.MustCompile(`\A([A-Za-z0-9._:@-]|%[0-9A-F]{2})*\z`).MatchString(escaped) {
			t.Errorf("%q became %q", text, escaped)
		}
	})
}

// FuzzNumbers compares the replacement of {n}, {n2}, … with a regular expression.
func FuzzNumbers(f *testing.F) {
	f.Add("member/{n}", int64(1), 1)
	f.Add(`{"a":["{n}","{n2}","{n1}","{n02}","{n{n3}}","{n65}","{n64}"]}`, int64(100), 64)
	f.Add("{n}{n2}{n3}{", int64(-1), 2)
	mark := regexp.MustCompile(`\{n(|[2-9]|[1-9][0-9])\}`)
	f.Fuzz(func(t *testing.T, text string, last int64, take int) {
		if take < 1 || take > MaxTake || last > MaxNumber || last < -MaxNumber {
			return
		}
		want := mark.ReplaceAllStringFunc(text, func(found string) string {
			i := 1
			_, _ = fmt.Sscanf(found, "{n%d}", &i)
			if i > take {
				return found
			}
			return fmt.Sprint(last - int64(take) + int64(i))
		})
		if got := newNumbers(last, int64(take)).Replace(text); got != want {
			t.Errorf("%q with %d numbers up to %d is %q, want %q", text, take, last, got, want)
		}
	})
}

// FuzzParseRecord checks that a parsed field becomes the same field again.
func FuzzParseRecord(f *testing.F) {
	f.Add([]byte("1 2 -1 15000 u:amy ~ amy/phone amy/tab\n{\"a\":1}"))
	f.Add([]byte("1 0 0 0 b member/1\nnull"))
	f.Add([]byte("1 0 0 0  \n"))
	f.Add([]byte("1 0 0 0 b\n1"))
	f.Fuzz(func(t *testing.T, record []byte) {
		field, err := ParseRecord(string(record))
		if err != nil {
			return
		}
		again, err := ParseRecord(string(field.AppendRecord(nil)))
		if err != nil || !reflect.DeepEqual(again, field) {
			t.Errorf("%q is %+v, and then %+v: %v", record, field, again, err)
		}
	})
}

// FuzzDecodeEntry checks that a decoded entry becomes the same entry again, and that readers can
// apply and show it.
func FuzzDecodeEntry(f *testing.F) {
	for _, text := range []string{
		`~{}`, `{}`, `~null`, `~{"set":{"a":1},"until":{"a":5},"own":{"a":["x"]},"data":null,"by":"x"}`,
		`~{"cleared":true,"gone":{"a":"left"},"del":["b"],"away":{"c":0},"back":["d"]}`, `~{"set":{"a":null,"b":1e999}}`,
		`~{"by":"1","from":"amy/tab","exclude":"bob/tab","data":{"n":1}}`, `~{"erased":1795330758518,"set":{"a":1}}`, `~{"erase":735325130218612}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		e, err := DecodeEntry(text)
		if err != nil {
			return
		}
		encoded := e.Encode()
		again, err := DecodeEntry(encoded)
		if err != nil || !bytes.Equal(again.Encode(), encoded) {
			t.Fatalf("%q becomes %q, and then %+v: %v", text, encoded, again, err)
		}
		m := NewMap(0)
		m.Apply(1, e)
		m.Apply(2, again)
		m.Pages(5, Filter{State: true}, 100)
		e.Show(Filter{State: true, Prefix: "a"})
		if erased := e.ErasedAt(5).Encode(); !IsErased(erased) || IsErased(encoded) != (e.Erased != 0) {
			t.Fatalf("%q is erased: %v; and then it is %q", encoded, IsErased(encoded), erased)
		}
		var follower Follower
		follower.Message(1, e.Show(Filter{State: true, Hidden: true, By: true}))
	})
}

// FuzzScanEntry checks that scanEntry and appendPlain decode and encode as encoding/json does.
func FuzzScanEntry(f *testing.F) {
	for _, text := range []string{
		`{"set":{"b/1":{"n":[1,"x"]},"a":null},"until":{"a":5},"own":{"a":["x","y"],"b/1":[]},"by":"tab-1","data":null}`,
		`{"cleared":true,"gone":{"a":"left","b":"expired"},"del":["c","d"],"away":{"e":0},"back":["f"]}`,
		`{"set":{"a":1},"set":{"b":2}}`, `{"del":["a"],"del":["b"]}`, `{"del":[]}`, `{"set":{}}`, `{"cleared":false}`, `{"Set":{"a":1}}`,
		`{"own":{"a":null}}`, `{"until":{"a":-1}}`, `{"until":{"a":null}}`, `{"set":{"a": [1, 2]}}`, "{\"set\":{\"a\":1\n}}", `{"by":"\u0041"}`,
		`{"by":"é<&>"}`, "{\"by\":\"\u2028\"}", "{\"by\":\"\xff\"}", `{"del":["a",]}`, `{"del":[,"a"]}`, `{"set":{"a":1,"a":2}}`, `{"x":1}`, `{}`, `{"by":"a"}}`,
		`{"by":"1","from":"amy/tab","exclude":"bob/tab","data":{"n":1}}`, `{"erased":1795330758518,"del":["a"]}`, `{"erase":-5}`, `{"erase":1e3}`,
		`{"by":"amy/tab","data":{"text":"hi"}}`, `{"by":"amy/tab","exclude":"amy/tab","data":1}`, `{"exclude":"é","data":"<"}`,
		`{"erased":null,"exclude":null,"from":"\u0000"}`, `{"erase":1,"erase":2}`, `{"Erased":1}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var want Entry
		err := json.Unmarshal(text, &want)
		if got := new(Entry); scanEntry(got, text) && (err != nil || !reflect.DeepEqual(*got, want)) {
			t.Fatalf("%q is %+v, want %+v: %v", text, *got, want, err)
		}
		if m, ok := ScanMessage(append([]byte{EntryMark}, text...)); ok &&
			(err != nil || want.HasChanges() || m.Exclude != want.Exclude || want.Erase != 0 || want.Erased != 0 || m.By != want.By || !bytes.Equal(m.Data, want.Data)) {
			t.Fatalf("%q is the message %+v, want %+v: %v", text, m, want, err)
		} else if ok && want.From == "" && payload.IsCompact(m.Data) && !bytes.Equal(m.Encode(), want.encodeAny()) {
			t.Fatalf("%q is encoded as the message %q, want %q", text, m.Encode(), want.encodeAny())
		}
		if err != nil {
			return
		}
		if got, want := want.Encode(), want.encodeAny(); !bytes.Equal(got, want) {
			t.Fatalf("%q is encoded as %q, want %q", text, got, want)
		}
	})
}

// TestScanAcceptsUsualEntries checks that the entries of the stores need no encoding/json.
func TestScanAcceptsUsualEntries(t *testing.T) {
	for _, text := range []string{
		`{"set":{"turn":"amy"},"by":"tab-1","data":{"move":"e4"}}`, `{"gone":{"seat/A1":"expired"}}`, `{"away":{"member/amy":1795330758518}}`,
		`{"set":{"a":1,"b":[true]},"until":{"a":1795330758518},"own":{"a":["tab-1"],"b":[]}}`, `{"cleared":true}`, `{"del":["a","b"],"back":["c"]}`,
		`{"by":"amy/tab","data":{"text":"hello"}}`, `{"by":"1","from":"amy/tab","exclude":"amy/tab","data":1}`, `{"erased":1795330758518}`, `{"erase":735325130218612}`,
	} {
		e := new(Entry)
		if !scanEntry(e, []byte(text)) {
			t.Errorf("scanEntry does not accept %s", text)
		} else if !e.isPlain() {
			t.Errorf("%s is not plain", text)
		}
	}
}

func BenchmarkEntry(b *testing.B) {
	data := []byte(`~{"set":{"seat/17":{"type":"chat","from":"alice","text":"a value of an ordinary size, about ninety bytes"}}}`)
	message := []byte(`~{"by":"alice/phone","data":{"type":"chat","from":"alice","text":"a message of an ordinary size, about ninety bytes"}}`)
	e, err := DecodeEntry(data)
	if err != nil {
		b.Fatal(err)
	}
	m, _ := ScanMessage(message)
	for _, c := range []struct {
		name string
		do   func()
	}{
		{"decode", func() { _, _ = DecodeEntry(data) }},
		{"decode a message", func() { _, _ = DecodeEntry(message) }},
		{"scan a message", func() { _, _ = ScanMessage(message) }},
		{"encode a message", func() { m.Encode() }},
		{"unmarshal", func() { _ = json.Unmarshal(data[1:], new(Entry)) }},
		{"encode", func() { e.Encode() }},
		{"marshal", func() { e.encodeAny() }},
		{"show", func() { e.Show(Filter{State: true, By: true}) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.do()
			}
		})
	}
}

// FuzzParseFields checks that fields become the same fields again.
func FuzzParseFields(f *testing.F) {
	for _, object := range []string{`{}`, `null`, `{"a":[1,2]}`, `{"a":null,"b":[1,{"x":1},5,"away"]}`, `{"a":[1]}`, `{"a":[]}`, `{"a":[1,2,3,4,5]}`} {
		f.Add([]byte(object))
	}
	f.Fuzz(func(t *testing.T, object []byte) {
		fields, err := ParseFields(object)
		if err != nil {
			return
		}
		for name, shown := range fields {
			if CheckName(name) != nil || shown != nil && shown.Value == nil {
				continue
			}
			again, err := ParseFields(append(AppendField([]byte{'{'}, name, shown), '}'))
			if err != nil || !reflect.DeepEqual(again[name], shown) {
				t.Errorf("%s: field %s is %+v, and then %+v: %v", object, name, shown, again[name], err)
			}
		}
	})
}
