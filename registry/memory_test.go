package registry

import (
	"fmt"
	"testing"
	"time"
)

// TestMemoryForgetsUsersNobodyAsksFor: expired users go as new ones come.
func TestMemoryForgetsUsersNobodyAsksFor(t *testing.T) {
	now := time.Now()
	m := NewMemory(Options{Now: func() time.Time { return now }})
	for i := range 1000 {
		ok(t, m.BindUser(t.Context(), fmt.Sprint("old-", i), Binding{"phone", "a", 1}))
	}
	now = now.Add(m.opts.UserTTL)
	for i := range 1000 {
		ok(t, m.BindUser(t.Context(), fmt.Sprint("new-", i), Binding{"phone", "a", 1}))
	}
	if n := len(m.users); n > 1500 {
		t.Errorf("%d users are kept, 1000 of them live", n)
	}
}
