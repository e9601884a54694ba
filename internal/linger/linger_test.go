package linger

import (
	"bytes"
	"testing"
)

// endless is input without an end.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	e.read += len(p)
	return len(p), nil
}

func TestDrop(t *testing.T) {
	r := &endless{}
	if Drop(r); r.read != Bytes {
		t.Errorf("%d bytes were read, want %d", r.read, Bytes)
	}
	short := bytes.NewReader([]byte("short"))
	if Drop(short); short.Len() != 0 {
		t.Errorf("%d bytes are left", short.Len())
	}
}
