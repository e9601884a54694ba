package account

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"switchboard/broker/namespace"
)

// TestRanges compares the bounds of parameters with those of sessions.
func TestRanges(t *testing.T) {
	for name, want := range map[string]string{
		"TTLMS": fmt.Sprintf("%d,%d", time.Second.Milliseconds(), namespace.MaxLease.Milliseconds()),
		"TTL":   fmt.Sprintf("1,%d", namespace.MaxLease/time.Second),
	} {
		if f, _ := reflect.TypeFor[putRequest]().FieldByName(name); f.Tag.Get("range") != want {
			t.Errorf("%s has the range %s, want %s", name, f.Tag.Get("range"), want)
		}
	}
}
