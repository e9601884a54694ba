package api

import "testing"

// TestClientWatches: a hint wakes each call that waits for the client, and no other.
func TestClientWatches(t *testing.T) {
	var w ClientWatches
	first, stopFirst := w.Add("phone")
	second, stopSecond := w.Add("phone")
	other, stopOther := w.Add("tab")
	w.Hint("phone")
	w.Hint("phone") // is not lost, and does not block
	for name, signal := range map[string]<-chan struct{}{"first": first, "second": second} {
		select {
		case <-signal:
		default:
			t.Errorf("the %s call is not woken", name)
		}
	}
	stopFirst()
	w.Hint("phone")
	if len(first) != 0 || len(second) != 1 || len(other) != 0 {
		t.Errorf("after the first call has ended: %d, %d, %d", len(first), len(second), len(other))
	}
	stopSecond()
	stopOther()
	w.Hint("phone")
	if w.count.Load() != 0 || len(w.byClient) != 0 {
		t.Errorf("at the end %d calls, %v", w.count.Load(), w.byClient)
	}
}
