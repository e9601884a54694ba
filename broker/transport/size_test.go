package transport

import (
	"testing"
	"unsafe"
)

func TestSize(t *testing.T) {
	if n := unsafe.Sizeof(pollerConn{}); n > 64 {
		t.Errorf("an idle connection takes %d bytes, want at most 64", n)
	}
}
