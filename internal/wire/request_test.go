package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
)

func ptr[T any](v T) *T { return &v }

func TestDecodeRequest(t *testing.T) {
	tests := map[string]struct {
		raw  string
		want Request
	}{
		"type only":      {`{"type":"ping"}`, Request{Type: "ping"}},
		"white space":    {" {\n\"type\" : \"ping\"\t}\r\n", Request{Type: "ping"}},
		"unknown fields": {`{"type":"ping","x":[{}],"y":null}`, Request{Type: "ping"}},
		"unknown type":   {`{"type":"dance","ref":1}`, Request{Type: "dance", Ref: RefOf(1)}},
		"connect": {
			`{"type":"connect","token":"t","client":"c","user":"u","ack":"auto"}`,
			Request{Type: "connect", Token: "t", Client: "c", User: "u", Ack: "auto"},
		},
		"after":     {`{"type":"subscribe","channel":"a","after":0}`, Request{Type: "subscribe", Channel: "a", After: ptr(int64(0))}},
		"no after":  {`{"type":"subscribe","channel":"a","after":null}`, Request{Type: "subscribe", Channel: "a"}},
		"large id":  {`{"type":"ack","id":9007199254740993}`, Request{Type: "ack", ID: 9007199254740993}},
		"ref 0":     {`{"type":"ping","ref":0}`, Request{Type: "ping", Ref: RefOf(0)}},
		"ref below": {`{"type":"ping","ref":-7}`, Request{Type: "ping", Ref: RefOf(-7)}},
		"null ref":  {`{"type":"ping","ref":null}`, Request{Type: "ping"}},
		"data": {
			`{"type":"publish","channel":"a","data":{"b":[1, "\n"]}}`,
			Request{Type: "publish", Channel: "a", Data: json.RawMessage(`{"b":[1, "\n"]}`)},
		},
		"null data": {`{"type":"publish","data":null}`, Request{Type: "publish", Data: json.RawMessage(`null`)}},
		"braces in text": {
			`{"type":"ping","token":"` + strings.Repeat(`[{\"`, 100) + `"}`,
			Request{Type: "ping", Token: strings.Repeat(`[{"`, 100)},
		},
		"deepest": {
			`{"type":"x","data":` + strings.Repeat("[", MaxDepth-1) + strings.Repeat("]", MaxDepth-1) + `}`,
			Request{Type: "x", Data: json.RawMessage(strings.Repeat("[", MaxDepth-1) + strings.Repeat("]", MaxDepth-1))},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			raw := []byte(test.raw)
			got, err := DecodeRequest(raw)
			if err != nil {
				t.Fatal(err)
			}
			clear(raw) // a transport uses its buffer again
			if !reflect.DeepEqual(got, test.want) {
				t.Fatalf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

// TestDecodeRequestRefuses checks that an error says what is wrong and where.
func TestDecodeRequestRefuses(t *testing.T) {
	tests := map[string]struct{ raw, want string }{
		"nothing":          {``, "not JSON: byte 0: unexpected end of JSON input"},
		"cut off":          {`{"type":"ping"`, "not JSON: byte 14: unexpected end of JSON input"},
		"no JSON":          {`{"type":pong}`, "not JSON: byte 9: invalid character 'p' looking for beginning of value"},
		"two objects":      {`{"type":"ping"}{}`, "not JSON: byte 16: invalid character '{' after top-level value"},
		"line break":       {"{\"type\":\"a\nb\"}", `not JSON: byte 11: invalid character '\n' in string literal`},
		"an array":         {`[1]`, "a JSON object is expected, not array"},
		"a number":         {`17`, "a JSON object is expected, not number"},
		"null":             {`null`, "type: missing"},
		"no type":          {`{"ref":1}`, "type: missing"},
		"type number":      {`{"type":1}`, "type: number does not fit, expected a string"},
		"channel object":   {`{"type":"subscribe","channel":{}}`, "channel: object does not fit, expected a string"},
		"id text":          {`{"type":"ack","id":"1"}`, "id: string does not fit, expected an integer"},
		"id fraction":      {`{"type":"ack","id":1.5}`, "id: number 1.5 does not fit, expected an integer"},
		"id far too large": {`{"type":"ack","id":` + strings.Repeat("9", 1000) + `}`, "id: number " + strings.Repeat("9", 33) + " does not fit, expected an integer"},
		"id too large":     {`{"type":"ack","id":9223372036854775808}`, "id: number 9223372036854775808 does not fit, expected an integer"},
		"after text":       {`{"type":"subscribe","after":"x"}`, "after: string does not fit, expected an integer"},
		"after below zero": {`{"type":"subscribe","after":-1}`, "after: -1 is below zero"},
		"limit true":       {`{"type":"history","limit":true}`, "limit: bool does not fit, expected an integer"},
		"ref text":         {`{"type":"ping","ref":"7"}`, `ref: "7" is not an integer`},
		"ref fraction":     {`{"type":"ping","ref":1.0}`, "ref: 1.0 is not an integer"},
		"ref exponent":     {`{"type":"ping","ref":1e3}`, "ref: 1e3 is not an integer"},
		"ref object":       {`{"type":"ping","ref":{"a":1}}`, `ref: {"a":1} is not an integer`},
		"ref long": {
			`{"type":"ping","ref":"` + strings.Repeat("x", 1000) + `"}`,
			`ref: "` + strings.Repeat("x", 39) + " is not an integer",
		},
		"too deep":          {`{"type":"x","data":` + strings.Repeat("[", MaxDepth), "byte 82: nested deeper than 64 levels"},
		"too deep unclosed": {strings.Repeat("{", 1000), "byte 64: nested deeper than 64 levels"},
		"not UTF-8":         {"{\"type\":\"\xff\"}", "the message is not UTF-8"},
		"surrogate":         {"{\"type\":\"\xed\xa0\x80\"}", "the message is not UTF-8"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := DecodeRequest([]byte(test.raw))
			own, ok := errors.AsType[*Error](err)
			if !ok || own.Code != BadRequest || !strings.Contains(own.Message, test.want) {
				t.Fatalf("got %v, want bad_request with %q", err, test.want)
			}
		})
	}
}

func TestCompactData(t *testing.T) {
	tests := map[string]struct{ data, want string }{
		"compact":     {`{"a":1}`, `{"a":1}`},
		"white space": {" {\n\"a\" :\t[1 ,\r\n2]\n} ", `{"a":[1,2]}`},
		"text stays":  {`{"a": " \n {} \" , "}`, `{"a":" \n {} \" , "}`},
		"a number":    {` 1 `, `1`},
		"null":        {`null`, `null`},
		"markup":      {`"<b>&"`, `"<b>&"`},
		"separators":  {"\"\u2028\u2029\u0085\"", "\"\u2028\u2029\u0085\""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			raw := []byte(test.data)
			got, err := CompactData(raw, len(raw))
			if err != nil {
				t.Fatal(err)
			}
			clear(raw)
			if string(got) != test.want {
				t.Fatalf("got %q, want %q", got, test.want)
			}
			if bytes.ContainsAny(got, "\r\n") {
				t.Fatal("a line break is left: it would end a line of raw TCP")
			}
		})
	}
}

func TestCompactDataRefuses(t *testing.T) {
	tests := map[string]struct {
		data string
		code ErrorCode
		want string
	}{
		"missing":     {"", BadRequest, "data: missing"},
		"too large":   {`"` + strings.Repeat("x", 99) + `"`, TooLarge, "data: 101 bytes, at most 100 are allowed"},
		"space only":  {"  \n", BadRequest, "not JSON: byte 3"},
		"two values":  {"1 2", BadRequest, "not JSON: byte 3: invalid character '2' after top-level value"},
		"line break":  {"\"a\nb\"", BadRequest, "not JSON: byte 3"},
		"cut off":     {`{"a":`, BadRequest, "not JSON: byte 5"},
		"not UTF-8":   {"\"\xff\"", BadRequest, "UTF-8"},
		"too deep":    {strings.Repeat("[", 65), BadRequest, "byte 64: nested deeper"},
		"wrong close": {`[}`, BadRequest, "not JSON: byte 2"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := CompactData([]byte(test.data), 100)
			own, ok := errors.AsType[*Error](err)
			if !ok || own.Code != test.code || !strings.Contains(own.Message, test.want) {
				t.Fatalf("got %v, want %s with %q", err, test.code, test.want)
			}
		})
	}
}

func TestClientIDs(t *testing.T) {
	long := strings.Repeat("x", MaxName)
	for _, c := range []struct{ user, client, id string }{
		{"", "tab", "tab"}, {"alice", "phone", "alice/phone"}, {"a/b", "c", "a/b/c"}, {"a/", "c", "a//c"}, {"/", "c", "//c"},
		{long, long, long + "/" + long},
	} {
		id := ClientID(c.user, c.client)
		if id != c.id || UserOf(id) != c.user || ClientPart(id) != c.client || CheckClientID(id) != nil {
			t.Errorf("%s of %s is %s, of %s: %v", c.client, c.user, id, UserOf(id), CheckClientID(id))
		}
	}
	for _, id := range []string{"", "/", "/phone", "alice/", "a b", "a b/c", "a/b c", "{a}/b", long + "x", long + "x/c", "u/" + long + "x"} {
		if own, ok := errors.AsType[*Error](CheckClientID(id)); !ok || own.Code != BadRequest {
			t.Errorf("%.20q is an id", id)
		}
	}
	if err := CheckClientPart("alice/phone"); err == nil || !strings.Contains(err.Error(), "client: '/' at byte 5") {
		t.Errorf("got %v", err)
	}
}

func TestCheckSecret(t *testing.T) {
	for secret, good := range map[string]bool{
		"sixteen bytes...": true, strings.Repeat("é", 8): true, strings.Repeat("x", 200): true,
		"": false, "fifteen bytes..": false, strings.Repeat("x", 201): false,
		"sixteen bytes..\n": false, "sixteen bytes..\xff": false, "sixteen bytes..\u202e": false,
	} {
		err := CheckSecret(secret)
		if good != (err == nil) || err != nil && secret != "" && strings.Contains(err.Error(), secret) {
			t.Errorf("%.20q: %v", secret, err)
		}
	}
}

func TestCheckName(t *testing.T) {
	for _, name := range []string{"a", "$all", "news/sport:1", "Zürich", "日本", `"quoted\"`, strings.Repeat("x", MaxName), "<&>", "\u200d"} {
		if err := CheckName("channel", name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for name, want := range map[string]string{
		"":                             "channel: the name is empty",
		strings.Repeat("x", MaxName+1): "channel: the name has 201 bytes, at most 200 are allowed",
		"a\xffb":                       "channel: the name is not UTF-8",
		"a b":                          "channel: character ' ' at byte 1 of the name is not allowed",
		"a\nb":                         `channel: character '\n' at byte 1 of the name is not allowed`,
		"{a":                           "channel: character '{' at byte 0",
		"ü}":                           "channel: character '}' at byte 2",
		"a\x00":                        "channel: character '\\x00' at byte 1",
		"a\x7f":                        "channel: character '\\x7f' at byte 1",
		"a\u0085":                      "channel: character '\\u0085' at byte 1",
		"a\u00a0":                      "channel: character '\\u00a0' at byte 1",
		"a\u2028":                      "channel: character '\\u2028' at byte 1",
		"a\u3000":                      "channel: character '\\u3000' at byte 1",
	} {
		err := CheckName("channel", name)
		own, ok := errors.AsType[*Error](err)
		if !ok || own.Code != BadRequest || !strings.Contains(own.Message, want) {
			t.Errorf("%.20q: got %v, want bad_request with %q", name, err, want)
		}
	}
	if !IsSystem("$all") || IsSystem("all$") || IsSystem("") {
		t.Error("a channel is the system's own when its name begins with $")
	}
}
