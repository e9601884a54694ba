package session

import (
	"testing"
	"unsafe"

	"switchboard/broker/hub"
)

// TestSize: the next lengths that the allocator has room for are 240, 96 and 48 bytes.
func TestSize(t *testing.T) {
	if n := unsafe.Sizeof(Session{}); n > 224 {
		t.Errorf("an idle session takes %d bytes, at most 224 are meant", n)
	}
	if n := unsafe.Sizeof(extra{}); n > 80 {
		t.Errorf("what only some sessions have takes %d bytes, at most 80 are meant", n)
	}
	if n := unsafe.Sizeof(hub.Subscription{}); n > 40 {
		t.Errorf("a subscription takes %d bytes, at most 40 are meant", n)
	}
}
