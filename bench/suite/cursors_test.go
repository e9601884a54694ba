//go:build long

package main

import (
	"strings"
	"testing"
)

// TestCursorLog checks which sequences of values count, and when all values have arrived. With two
// clients, value n of client c has the number 2n+c.
func TestCursorLog(t *testing.T) {
	for name, tc := range map[string]struct {
		complete bool
		values   []int64 // received by subscriber 0 from client 1
		fault    string
		done     bool
	}{
		"all":            {true, []int64{1, 2, 3}, "", true},
		"the last":       {false, []int64{3}, "", true},
		"one is missing": {true, []int64{1, 3}, "received value 3 of client 1 after value 1", true},
		"newer ones":     {false, []int64{1, 3}, "", true},
		"repeated":       {false, []int64{1, 1, 3}, "received value 1 of client 1 after value 1", true},
		"an older one":   {false, []int64{1, 3, 2}, "received value 2 of client 1 after value 3", false},
		"not the last":   {false, []int64{1, 2}, "", false},
	} {
		l := newCursorLog(2, tc.complete, false)
		l.sent = 3
		l.receive(1, 2*l.sent) // the other direction
		for _, n := range tc.values {
			l.receive(0, 2*n+1)
		}
		fault := ""
		if l.fault != nil {
			fault = l.fault.Error()
		}
		if !strings.HasSuffix(fault, tc.fault) || (fault == "") != (tc.fault == "") || l.isDone() != tc.done || l.received != int64(len(tc.values)+1) {
			t.Errorf("%s: fault %q, done %v, %d received", name, fault, l.isDone(), l.received)
		}
	}
	own := newCursorLog(2, true, true)
	own.sent = 1
	own.receive(0, 3)
	own.receive(1, 2)
	if own.isDone() {
		t.Error("done before the clients have received their own values")
	}
}
