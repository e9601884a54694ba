package peer

import (
	"strings"
	"testing"
)

func TestOutboxCountsWithoutLink(t *testing.T) {
	o := newOutbox(0)
	for range 3 {
		if o.add(Hint{}, false) || o.add(Hint{}, true) {
			t.Error("queued without a link")
		}
	}
	o.open()
	if hints, number, _ := o.take(nil); len(hints) != 0 || number != 6 {
		t.Errorf("%d hints from %d", len(hints), number)
	}
	o.add(Hint{ID: 6}, false)
	o.add(Hint{ID: 7}, false)
	if n := o.close(); n != 2 {
		t.Errorf("%d hints were waiting", n)
	}
	o.open()
	if hints, number, _ := o.take(nil); len(hints) != 0 || number != 8 {
		t.Errorf("%d hints from %d", len(hints), number)
	}
}

func TestOutboxOverflow(t *testing.T) {
	for name, c := range map[string]struct {
		hint Hint
		fit  int
	}{
		"count": {Hint{Kind: Channel}, maxQueued},
		"bytes": {Hint{Kind: Channel, Data: make([]byte, maxData)}, maxQueuedBytes / (maxData + 72)},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOutbox(0)
			o.open()
			for i := range c.fit {
				if !o.add(c.hint, false) {
					t.Fatalf("hint %d does not fit", i)
				}
			}
			// The small one would fit, but the numbers of hints must be consecutive.
			if o.add(c.hint, false) || o.add(Hint{Kind: Client}, false) {
				t.Error("queued more than fits")
			}
			hints, number, whole := o.take(nil)
			if len(hints) != c.fit || number != 0 || whole {
				t.Errorf("took %d hints from %d, whole %t", len(hints), number, whole)
			}
			o.add(c.hint, false)
			if hints, number, whole := o.take(hints); len(hints) != 1 || int(number) != c.fit+2 || !whole {
				t.Errorf("after the overflow: %d hints from %d, whole %t", len(hints), number, whole)
			}
		})
	}
}

func TestOutboxTooLongFields(t *testing.T) {
	o := newOutbox(0)
	o.open()
	if o.add(Hint{Kind: Channel, Name: strings.Repeat("n", maxName+1)}, false) {
		t.Error("queued a name that the receiver refuses")
	}
	if hints, number, _ := o.take(nil); len(hints) != 0 || number != 1 {
		t.Errorf("%d hints, next is %d", len(hints), number)
	}
	if !o.add(Hint{Kind: Channel, Data: make([]byte, maxData+1)}, false) {
		t.Error("a hint with too large data must be sent without data")
	}
	if hints, number, _ := o.take(nil); len(hints) != 1 || hints[0].Data != nil || number != 1 {
		t.Errorf("took %d hints from %d", len(hints), number)
	}
}

func TestOutboxDiscard(t *testing.T) {
	o := newOutbox(0)
	o.open()
	if !o.add(Hint{}, true) {
		t.Error("a discarded hint must look sent")
	}
	if hints, number, _ := o.take(nil); len(hints) != 0 || number != 1 {
		t.Errorf("%d hints, next is %d", len(hints), number)
	}
}
