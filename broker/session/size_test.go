package session

import (
	"testing"
	"unsafe"

	"switchboard/broker/hub"
)

// TestSize checks sizes for which the allocator has a class. The next classes are 240, 96 and 48
// bytes.
func TestSize(t *testing.T) {
	if n := unsafe.Sizeof(Session{}); n > 224 {
		t.Errorf("a Session takes %d bytes, want at most 224", n)
	}
	if n := unsafe.Sizeof(extra{}); n > 80 {
		t.Errorf("extra takes %d bytes, want at most 80", n)
	}
	if n := unsafe.Sizeof(hub.Subscription{}); n > 40 {
		t.Errorf("a Subscription takes %d bytes, want at most 40", n)
	}
}
