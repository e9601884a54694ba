package session_test

import "testing"

// TestOwnerIsBackBeforeTheStateShowsIt: a client owns a field, reconnects and subscribes again
// before its server knows the field. Without another message of the client the field is not away.
func TestOwnerIsBackBeforeTheStateShowsIt(t *testing.T) {
	for name, known := range map[string]bool{"neither the field nor its end is known": false, "the field is known": true} {
		t.Run(name, func(t *testing.T) {
			h := newOwnHarness(t)
			watcher := h.connectDevice("watcher")
			watcher.expect("subscribed state", subscribeA)
			d := h.connectDevice("tablet")
			d.expect("subscribed state", subscribeA)
			h.hints = known
			d.send(`{"type":"publish","channel":"a","set":{"x":1},"own":true}`)
			h.hints = false
			d.end()
			h.wantFields("a", "x=1*")
			d = h.connectDevice("tablet")
			d.send(subscribeA)
			h.hints = true
			h.hub.MarkAllDirty()
			h.settle()
			h.settle()
			h.wantFields("a", "x=1")
			d.end()
			h.wantFields("a", "x=1*")
			d = h.connectDevice("tablet")
			d.send(subscribeA)
			d.send(unsubscribeA)
			h.wantFields("a", "")
		})
	}
}
