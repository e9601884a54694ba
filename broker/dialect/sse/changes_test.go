package sse

import (
	"strings"
	"testing"

	"switchboard/broker/dialect"
	"switchboard/broker/dialect/native"
	"switchboard/internal/state"
)

// TestPositionWithoutEvent checks that the position in a channel moves past a message that only
// changes the state: the id of the next event has it, or the next ping sends it. Otherwise a client
// would resume from a message that the store may have dropped.
func TestPositionWithoutEvent(t *testing.T) {
	const a, b = 735325130218600, 735325130218700
	for _, test := range []struct {
		name string
		next func(c *dialect.Encoding) []byte
	}{
		{"event of another channel", func(c *dialect.Encoding) []byte {
			return c.AppendMessage(nil, native.New(0).Message("b", b+2, []byte("1")))
		}},
		{"ping", func(c *dialect.Encoding) []byte { return c.AppendPing(nil) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := open(t, "channel=a&channel=b&token=t").Encoding
			for _, out := range [][]byte{
				c.AppendEvent(nil, connected(100)), c.AppendEvent(nil, subscribed(1, a, "a")), c.AppendEvent(nil, subscribed(2, b, "b")),
			} {
				read(t, out)
			}
			empty := &dialect.Message{Channel: "a", ID: a + 5, Changes: &dialect.Changes{Entry: &state.Entry{}}}
			if out := c.AppendMessage(nil, empty); len(out) > 0 {
				t.Errorf("an empty message is %q", out)
			}
			out := string(test.next(c))
			id, _, _ := strings.Cut(strings.TrimPrefix(out, "id:"), "\n")
			p, err := ParsePosition(id)
			if err != nil {
				t.Fatalf("%q: %v", out, err)
			}
			if after, _ := p.Channel("a"); after != a+5 {
				t.Errorf("the position in a is %d, want %d", after, a+5)
			}
			if test.name == "ping" && out != "id:"+id+"\n\n" {
				t.Errorf("the ping is %q, want an id alone", out)
			}
			if ping := c.AppendPing(nil); string(ping) != ":\n\n" {
				t.Errorf("the next ping is %q, want a comment", ping)
			}
		})
	}
}
