package strict

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"switchboard/internal/wire"
)

type inner struct {
	ID string `json:"id" required:"true"`
	N  *int   `json:"n"`
}

type Embedded struct {
	Mode   string `json:"mode" required:"true"`
	Hidden string `json:"-"`
}

type request struct {
	Embedded
	Score  int64            `json:"score" required:"true"`
	Data   json.RawMessage  `json:"data" required:"true"`
	Names  []string         `json:"names"`
	List   []inner          `json:"list"`
	Ref    wire.Ref         `json:"ref"`
	Counts map[string]inner `json:"counts"`
	Hidden string           `json:"-"`
}

func TestDecode(t *testing.T) {
	for text, want := range map[string]string{
		`{"mode":"a","score":0,"data":null}`:                                           "",
		" {\"data\" : [ 1 , {\"x\":\"}\\\"\"} ] ,\n\"score\":-1,\"mode\":\"a\" } \r\n": "",
		`{"mode":"a","score":1,"data":{},"list":[{"id":"x"},{"id":"y","n":2}]}`:        "",
		`{"mode":"a","\u0073core":1,"data":1}`:                                         "",

		`{"mode":"a","data":1}`:              "score: it is missing",
		`{"score":1,"data":1}`:               "mode: it is missing",
		`{"mode":"a","score":1}`:             "data: it is missing",
		`{}`:                                 "mode: it is missing",
		`{"mode":"a","score":null,"data":1}`: "score: null does not fit, expected an integer",
		`{"mode":null,"score":1,"data":1}`:   "mode: null does not fit, expected a string",
		`{"mode":"a","score":1,"data":1,"names":null,"ref":null,"list":null}`: "",
		`{"mode":"a","score":1,"data":1,"names":["a",null]}`:                  "names[1]: null does not fit, expected a string",
		`{"mode":"a","score":1,"score":2,"data":1}`:                           "score: it appears twice",
		`{"mode":"a","score":1,"data":1,"data":1}`:                            "data: it appears twice",
		`{"mode":"a","Score":1,"data":1}`:                                     "Score: unknown field",
		`{"mode":"a","score":1,"data":1,"hidden":""}`:                         `unknown field "hidden"`,
		`{"mode":"a","score":1,"data":1,"list":[{"id":"x"},{"n":1}]}`:         "list[1].id: it is missing",
		`{"mode":"a","score":1,"data":1,"list":[{"id":null,"n":null}]}`:       "list[0].id: null does not fit, expected a string",
		`{"mode":"a","score":1,"data":1,"list":[null]}`:                       "list[0]: null does not fit, expected an object",
		`{"mode":"a","score":1,"data":1,"counts":{"b":{"id":"x"},"a/b":{}}}`:  "counts.a/b.id: it is missing",
		`{"mode":"a","score":"1","data":1}`:                                   "score: string does not fit, expected an integer",
		`{"mode":"a","score":1.5,"data":1}`:                                   "score: number 1.5 does not fit, expected an integer",
		`null`:                                                                "a JSON object is expected, not null",
		`[]`:                                                                  "a JSON object is expected, not array",
		``:                                                                    "the body is empty",
		`{"mode":"a"`:                                                         "it ends early, after byte 11",
		`{"mode":"a","score":1} {}`:                                           "byte 24: text follows the JSON object",
		`{"mode":"a","score":1}}`:                                             "byte 23: text follows the JSON object",
	} {
		var r request
		err := Decode([]byte(text), &r)
		if want == "" {
			if err != nil {
				t.Errorf("%s: %v", text, err)
			}
			continue
		}
		own, ok := errors.AsType[*wire.Error](err)
		if !ok || own.Code != wire.BadRequest || !strings.Contains(own.Message, want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

// FuzzDecode compares Decode with encoding/json: it accepts no more, and reads the same.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"mode":"a","score":1,"data":{"a":[null,"\\\"",-1e3,true]},"list":[{"id":"x"}]}`))
	f.Add([]byte(`{"score":null,"names":[],"counts":{"x":{}}}`))
	f.Add([]byte(`[{}]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var got, want request
		err := Decode(text, &got)
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		if plain := d.Decode(&want); plain != nil {
			if err == nil {
				t.Fatalf("accepted, but encoding/json says %v", plain)
			}
			return
		}
		if err != nil {
			if own, ok := errors.AsType[*wire.Error](err); !ok || own.Code != wire.BadRequest || own.Message == "" {
				t.Fatalf("not a *wire.Error: %v", err)
			}
			return
		}
		a, _ := json.Marshal(got)
		if b, _ := json.Marshal(want); !bytes.Equal(a, b) {
			t.Fatalf("got %s, want %s", a, b)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	text := []byte(`{"mode":"a","score":1,"data":{"a":[1,2,3]},"names":["a","b"]}`)
	b.ReportAllocs()
	for b.Loop() {
		var r request
		if err := Decode(text, &r); err != nil {
			b.Fatal(err)
		}
	}
}
