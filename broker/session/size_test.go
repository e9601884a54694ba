package session

import (
	"testing"
	"unsafe"

	"switchboard/broker/hub"
)

// TestSize: the next lengths that the allocator has room for are 240, 112 and 48 bytes.
func TestSize(t *testing.T) {
	if n := unsafe.Sizeof(Session{}); n > 224 {
		t.Errorf("an idle session takes %d bytes, at most 224 are meant", n)
	}
	if n := unsafe.Sizeof(extra{}); n > 96 {
		t.Errorf("what only some sessions have takes %d bytes, at most 96 are meant", n)
	}
	if n := unsafe.Sizeof(hub.Subscription{}); n > 40 {
		t.Errorf("a subscription takes %d bytes, at most 40 are meant", n)
	}
}
