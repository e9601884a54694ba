package limit

import (
	"testing"
	"testing/synctest"
	"time"

	"switchboard/registry"
)

// TestStored checks what a server knows of the use of a sender: its own, and what others have
// reported.
func TestStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		list, _ := servers(2)
		amy := senderOf("amy", "", nil)
		use := func(s *Senders, bytes int, created bool) {
			t.Helper()
			r, wait := s.Reserve(t.Context(), amy, bytes, false)
			if wait > 0 {
				t.Fatal(wait)
			}
			s.Settle(r, true, created)
		}
		want := func(s *Senders, bytes, channels int) {
			t.Helper()
			got, err := s.Stored(t.Context(), amy)
			if err != nil || got != (StoredUse{Used{bytes, testBurst}, Used{channels, 16}}) {
				t.Errorf("got %+v, %v, want %d bytes and %d channels", got, err, bytes, channels)
			}
		}
		want(list[0], 0, 0)
		use(list[0], testStep, true)
		want(list[0], testStep, 1)
		want(list[1], 0, 0) // not reported
		use(list[0], 10*testStep, false)
		want(list[0], 11*testStep, 1)
		want(list[1], testStep, 1)
		use(list[1], 1, false)
		want(list[1], testStep+1, 1)
		<-time.After(2 * time.Second)
		want(list[0], 11*testStep-4, 0) // 6400 bytes an hour
	})
	if got, err := (*Senders)(nil).Stored(t.Context(), Sender{}); got != (StoredUse{}) || err != nil {
		t.Errorf("without limits: %+v, %v", got, err)
	}
	unlimited := NewSenders(SenderRates{Read: PerSecond(1)}, nil)
	if got, err := unlimited.Stored(t.Context(), senderOf("amy", "", nil)); got != (StoredUse{}) || err != nil {
		t.Errorf("without limits of what is stored: %+v, %v", got, err)
	}
	l := &testLedger{Memory: registry.NewMemory(registry.Options{}), fails: true}
	if _, err := newServer(l).Stored(t.Context(), senderOf("amy", "", nil)); err == nil {
		t.Error("the store did not answer, and there is no error")
	}
}
