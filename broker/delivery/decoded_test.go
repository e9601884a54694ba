package delivery

import (
	"strings"
	"testing"

	"switchboard/broker/peer"
	"switchboard/internal/state"
	"switchboard/queue"
)

// TestLocalHintsAreDecoded checks that this server gets each entry of a message also as it was
// before it was encoded, from single pushes and from batches, and nothing else.
func TestLocalHintsAreDecoded(t *testing.T) {
	large := []byte(`"` + strings.Repeat("v", maxInline) + `"`)
	published := func(m state.Message) Payload { return Payload{Message: m, Entry: m.Encode()} }
	for _, test := range []struct {
		name    string
		payload Payload
		decoded bool
		data    string // of the hint, "" for none
	}{
		{"plain", Payload{Data: []byte("1")}, false, "1"},
		{"author", published(state.Message{Data: []byte("1"), By: "amy/tab"}), true, `~{"by":"amy/tab","data":1}`},
		{"excluded", Payload{Data: []byte("1"), Exclude: "amy/tab"}, true, `~{"exclude":"amy/tab","data":1}`},
		{"both", published(state.Message{Data: []byte("1"), By: `a"b`, Exclude: "c"}), true, `~{"by":"a\"b","exclude":"c","data":1}`},
		{"change", Payload{Update: &state.Update{Ops: []state.Op{{Field: "x", Kind: state.Set, Value: []byte("1")}}, Client: "amy/tab"}}, false, `~{"set":{"x":1},"by":"amy/tab"}`},
		{"large", published(state.Message{Data: large, By: "amy/tab"}), false, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, n := range []int{1, 2} { // a push, and a batch
				p := newMemoryPusher()
				p.queue = queue.NewMemory(queue.Options{}, func(string) []string { return []string{"me", "other"} })
				p.opts.Queue, p.opts.States = p.queue, p.queue
				calls := 0
				p.opts.Local = func(h peer.Hint, decoded state.Message) {
					calls++
					if string(h.Data) != test.data || (decoded.Data != nil) != test.decoded {
						t.Errorf("hint %s with %+v", h.Data, decoded)
					}
					if test.decoded && string(decoded.Encode()) != test.data {
						t.Errorf("%s is decoded as %+v", h.Data, decoded)
					}
				}
				pushes := make([]Push, n)
				for i := range pushes {
					pushes[i] = Push{Kind: Channel, Name: "abc"[i : i+1], Payload: test.payload}
				}
				if p.PushBatch(t.Context(), pushes); calls != n || len(p.hints) != n || string(p.hints[0].Data) != test.data {
					t.Errorf("%d hints here, elsewhere %+v", calls, p.hints)
				}
			}
		})
	}
}
