package fields

import (
	"errors"
	"strings"
	"testing"

	"switchboard/internal/state"
	"switchboard/internal/wire"
)

// channel is the state of a channel with the rules of testSet.
type channel struct {
	*testing.T
	*state.State
	id int64
}

// change makes a change and returns the code of its refusal, or "".
func (c *channel) change(w *Writer, text string) wire.ErrorCode {
	c.Helper()
	u, err := Build(testSet(c), w, "room:1", decode(c, text), nil, testLimits, 200)
	if err == nil {
		_, err = c.Apply(u, 1000, func() int64 { c.id++; return c.id })
	}
	if refused, ok := errors.AsType[*wire.Error](err); ok {
		return refused.Code
	}
	if err != nil {
		c.Fatal(err)
	}
	return ""
}

// TestRules checks what several writers may do one after the other.
func TestRules(t *testing.T) {
	user := func(name string) *Writer {
		w := amy()
		w.User, w.Client = name, name+"/tab"
		return w
	}
	type step struct {
		w      *Writer
		change string
		want   wire.ErrorCode
	}
	bob := user("bob")
	for name, steps := range map[string][]step{
		"a claim belongs to the user that made it": {
			{amy(), `{"set":{"seat/1":1}}`, ""},
			{bob, `{"set":{"seat/1":2}}`, wire.Conflict},
			{bob, `{"add":{"seat/1":2}}`, wire.Conflict},
			{bob, `{"touch":["seat/1"]}`, wire.Conflict},
			{bob, `{"del":["seat/1"]}`, wire.Conflict},
			{amy(), `{"set":{"seat/1":3}}`, ""},
			{amy(), `{"del":["seat/1"]}`, ""},
			{bob, `{"set":{"seat/1":2}}`, ""},
		},
		"the backend takes a claim over": {
			{amy(), `{"set":{"seat/1":1}}`, ""},
			{backend(), `{"set":{"seat/1":2}}`, ""},
			{amy(), `{"set":{"seat/1":1}}`, wire.Conflict},
			{amy(), `{"del":["seat/1"]}`, wire.Conflict},
		},
		"a group has one limit for all writers": {
			{backend(), `{"set":{"member/b":1,"member/c":1,"member/d":1}}`, ""},
			{amy(), `{"set":{"member/amy":1}}`, ""},
			{bob, `{"set":{"member/bob":1}}`, wire.Full},
			{backend(), `{"set":{"member/x":1}}`, wire.Full},
			{amy(), `{"set":{"member/amy":2}}`, ""},
			{amy(), `{"del":["member/amy"]}`, ""},
			{bob, `{"set":{"member/bob":1}}`, ""},
		},
		"only the holder of a field writes its parts": {
			{amy(), `{"set":{"p/1/hat":1}}`, wire.NotFound},
			{amy(), `{"set":{"n/1":1}}`, ""},
			{amy(), `{"set":{"p/1/hat":1}}`, ""},
			{bob, `{"set":{"p/1/hat":2}}`, wire.Forbidden},
			{bob, `{"add":{"p/1/hat":2}}`, wire.Forbidden},
			{bob, `{"touch":["p/1/hat"]}`, wire.Forbidden},
			{bob, `{"set":{"p/1/cap":2}}`, wire.Forbidden},
			{backend(), `{"set":{"p/1/cap":2}}`, ""},
			{amy(), `{"set":{"p/1/cap":3}}`, ""},
			{amy(), `{"del":["p/1/cap"]}`, ""},
			{amy(), `{"del":["n/1"]}`, ""},
			{amy(), `{"touch":["p/1/hat"]}`, wire.NotFound},
		},
		"only the holder of a field deletes its parts": {
			{amy(), `{"set":{"n/1":1,"p/1/hat":1}}`, ""},
			{backend(), `{"set":{"p/1/cap":1}}`, ""},
			{bob, `{"del":["p/1/hat"]}`, wire.Forbidden},
			{bob, `{"del":["p/1/cap"]}`, wire.Forbidden},
			{bob, `{"del":["p/1/absent"]}`, ""},
			{amy(), `{"del":["p/1/hat","p/1/cap"]}`, ""},
		},
		"a counter stays within its bounds": {
			{amy(), `{"add":{"any/n":{"by":3,"max":5}}}`, ""},
			{amy(), `{"add":{"any/n":{"by":3,"max":5}}}`, wire.OutOfRange},
			{bob, `{"add":{"any/n":2},"if":{"any/n":1}}`, ""},
			{bob, `{"add":{"any/n":2},"if":{"any/n":1}}`, wire.Conflict},
		},
	} {
		c := &channel{T: t, State: state.New()}
		for i, s := range steps {
			if got := c.change(s.w, s.change); got != s.want {
				t.Errorf("%s: step %d: %s: %q, want %q", name, i, s.change, got, s.want)
			}
		}
	}
}

// TestMalformedValues checks values that no JSON decoder has seen before.
func TestMalformedValues(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "field a: the value is missing",
		"{":                      "field a: not JSON: ",
		"1 2":                    "field a: not JSON: ",
		"\"\xff\"":               "field a: the message is not UTF-8",
		strings.Repeat("[", 100): "field a: byte 64: nested deeper than 64 levels",
	} {
		change := wire.Change{Set: wire.Values{{Name: "a", JSON: []byte(text)}}}
		_, err := Build(testSet(t), backend(), "room:1", &change, nil, StateLimits{}, 0)
		if refused, ok := errors.AsType[*wire.Error](err); !ok || refused.Code != wire.BadRequest || !strings.HasPrefix(refused.Message, want) {
			t.Errorf("%.10q: %v, want %s", text, err, want)
		}
	}
	for _, text := range []string{"", "{", `{"by":1`, "1 2", "+1x"} {
		change := wire.Change{Add: wire.Values{{Name: "a", JSON: []byte(text)}}, If: wire.Values{{Name: "b", JSON: []byte(text)}}}
		if _, err := Build(testSet(t), backend(), "room:1", &change, nil, StateLimits{}, 0); err == nil {
			t.Errorf("add %q is accepted", text)
		}
		change.Add, change.Del = nil, []string{"a"}
		if _, err := Build(testSet(t), backend(), "room:1", &change, nil, StateLimits{}, 0); err == nil {
			t.Errorf("if %q is accepted", text)
		}
	}
}

// TestUpdateSharesNoMemory: the text of a request may be overwritten after Build.
func TestUpdateSharesNoMemory(t *testing.T) {
	change := wire.Change{Set: wire.Values{{Name: "a", JSON: []byte(`"one"`)}}}
	u, err := Build(testSet(t), backend(), "room:1", &change, nil, StateLimits{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	copy(change.Set[0].JSON, `"two"`)
	if string(u.Ops[0].Value) != `"one"` {
		t.Errorf("the value has become %s", u.Ops[0].Value)
	}
}

func BenchmarkBuild(b *testing.B) {
	set, w := testSet(b), amy()
	change := decode(b, `{"set":{"member/amy":{"name":"Amy"}},"touch":["seat/1"],"if":{"seat/1":7}}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Build(set, w, "room:1", change, nil, testLimits, 200); err != nil {
			b.Fatal(err)
		}
	}
}
