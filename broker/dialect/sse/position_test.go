package sse

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"switchboard/broker/dialect/native"
	"switchboard/internal/allocs"
	"switchboard/internal/wire"
)

// TestIDsAreSmall checks the length of ids. The longest must fit in a header of a request.
func TestIDsAreSmall(t *testing.T) {
	const now = int64(735325130218600)
	size := func(c *codec) int { return len(c.appendID(nil, false)) }
	one := &codec{client: "alice/phone", all: now - 1e9, inbox: now - 1e10, first: channel{name: "news", after: now}}
	if n := size(one); n > 50 {
		t.Errorf("the id of a stream with one channel has %d bytes", n)
	}
	full := &codec{
		client: strings.Repeat("u", wire.MaxName) + "/" + strings.Repeat("c", wire.MaxName), all: maxPosition, inbox: 1,
		extra: &extra{secret: strings.Repeat("s", 200)},
	}
	for i := range maxChannels {
		name := fmt.Sprint(i)
		full.addChannel(channel{name: name, hash: hashOf(name), after: 1 + rand.Int64N(1000)})
	}
	if n := size(full); n > 4<<10 {
		t.Errorf("the longest id has %d bytes", n)
	}
	if _, err := ParsePosition(string(full.appendID(nil, false))); err != nil {
		t.Error(err)
	}
}

func TestParsePositionRefuses(t *testing.T) {
	c := &codec{client: "c", all: 7, inbox: 5, first: channel{name: "a", hash: hashOf("a"), after: 6}}
	good := string(c.appendID(nil, false))
	if _, err := ParsePosition(good); err != nil {
		t.Fatal(err)
	}
	raw, _ := base64.RawURLEncoding.DecodeString(good)
	for i := range raw {
		if _, err := ParsePosition(base64.RawURLEncoding.EncodeToString(raw[:i])); err == nil && i != len(raw)-1-hashSize {
			t.Errorf("the first %d of %d bytes are an id", i, len(raw))
		}
	}
	c.addChannel(c.first)
	for name, text := range map[string]string{
		"the same channel twice": string(c.appendID(nil, false)), "an unknown version": "IA", "unknown flags": "HA",
		"too long": strings.Repeat("A", 2*maxID), "padding": good + "=", "empty": "",
	} {
		if p, err := ParsePosition(text); err == nil {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// FuzzPosition checks that a parsed id can be encoded and parsed again without a change.
func FuzzPosition(f *testing.F) {
	c := &codec{client: "alice/phone", all: 100, inbox: 70, extra: &extra{secret: strings.Repeat("s", 16)}}
	c.addChannel(channel{name: "a", hash: hashOf("a"), after: 0})
	c.addChannel(channel{name: "b", hash: hashOf("b"), after: 101})
	f.Add(string(c.appendID(nil, false)))
	f.Add(string(c.appendID(nil, true)))
	f.Add("EAAAAAFj")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePosition(text)
		if err != nil {
			return
		}
		again := &codec{client: p.Client, all: p.All, inbox: p.Inbox, extra: &extra{secret: p.Secret}}
		for h, after := range p.channels {
			again.addChannel(channel{name: string(h[:]), hash: h, after: after})
		}
		q, err := ParsePosition(string(again.appendID(nil, p.Final)))
		if err != nil || fmt.Sprintf("%+v", p) != fmt.Sprintf("%+v", q) {
			t.Fatalf("%q is %+v, and then %+v, %v", text, p, q, err)
		}
	})
}

// hot lists the calls of a delivery. They do not allocate, for any number of channels.
func hot() (cases []allocs.Case) {
	messages := native.New(0)
	for _, channels := range []int{1, maxChannels} {
		c := &codec{client: "alice/phone", all: 1}
		name := ""
		for i := range channels {
			name = fmt.Sprint("channel ", i)
			c.addChannel(channel{name: name, hash: hashOf(name), after: 735325130218600})
		}
		m := messages.Message(name, 735325130218601, []byte(`{"badge":3}`))
		e := inboxMessage(735325130218602)
		buf := make([]byte, 0, 8<<10)
		of := fmt.Sprintf(", %d channels", channels)
		cases = append(cases,
			allocs.Of("a message of a channel"+of, 0, func() { c.AppendMessage(buf, m) }),
			allocs.Of("a message of the client queue"+of, 0, func() { c.AppendEvent(buf, e) }),
			allocs.Of("a comment"+of, 0, func() { c.AppendPing(buf) }),
		)
	}
	return cases
}

func TestAllocs(t *testing.T)   { allocs.Test(t, hot()) }
func BenchmarkHot(b *testing.B) { allocs.Bench(b, hot()) }
