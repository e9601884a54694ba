//go:build long

package e2e

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"switchboard/internal/await"
	"switchboard/internal/testbed"
	"switchboard/internal/textconn"
)

var ownerRounds = flag.Int("owner-rounds", 0,
	"how many brokers TestOwnersOfKilledBroker kills with the default times, half a minute each; 0 means one with short times")

const ownerCount = 20

// TestOwnersOfKilledBroker kills a broker whose clients own fields. Half of them connect elsewhere
// at once, and keep their fields. A subscriber on another broker learns of each other field first
// that it is away, and after the grace period that it is gone.
func TestOwnersOfKilledBroker(t *testing.T) {
	rounds, settings := *ownerRounds, []string{`SWITCHBOARD_NAMESPACES={"table:*": {subscribe: users, state: users, grace: 1s, fields: {"member/{user}": {write: users}}}}`}
	if rounds > 0 {
		settings = []string{"SWITCHBOARD_TIMES_BEAT=2s"} // the default
	}
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout*time.Duration(1+rounds/2))
	defer cancel()
	var away, gone []time.Duration
	for range max(rounds, 1) {
		d := deployWith(t, 3, deployOptions{env: settings, defaultTimes: rounds > 0})
		a, g := killOwners(ctx, t, d)
		away, gone = append(away, a...), append(gone, g...)
		for _, b := range d.brokers {
			b.Kill()
		}
		d.janitor.Kill()
	}
	slices.Sort(away)
	slices.Sort(gone)
	t.Logf("%d fields: away after p50 %v, max %v; gone p50 %v, max %v after that", len(away), away[len(away)/2].Round(time.Millisecond),
		away[len(away)-1].Round(time.Millisecond), gone[len(gone)/2].Round(time.Millisecond), gone[len(gone)-1].Round(time.Millisecond))
}

// killOwners returns how long after the end of their broker the fields were away, and how long
// after that they were gone.
func killOwners(ctx context.Context, t *testing.T, d *deployment) (away, gone []time.Duration) {
	t.Helper()
	observer := follow(ctx, t, d.brokers[1], "table:3")
	for i := range ownerCount {
		own(ctx, t, connectOwner(ctx, t, d.brokers[0], i), i)
	}
	observer.await(ctx, t, "all own their field", func(messages []stateMessage) bool { return len(messages) >= ownerCount })
	killed := time.Now()
	end(ctx, t, d.brokers[0], syscall.SIGKILL)
	for i := ownerCount / 2; i < ownerCount; i++ {
		connectOwner(ctx, t, d.brokers[1+i%2], i)
	}
	ends := 0
	observer.await(ctx, t, "the fields of clients that do not return are gone", func(messages []stateMessage) bool {
		ends = 0
		for _, m := range messages {
			ends += len(m.Gone)
		}
		return ends >= ownerCount/2
	})
	checkCleanedUp(ctx, t, d, d.brokers[0])
	change(ctx, t, d.brokers[2], `{"channel":"table:3","set":{"last":1}}`)
	observer.await(ctx, t, "the last change arrives", func(messages []stateMessage) bool {
		return messages[len(messages)-1].Set["last"] != nil
	})
	return observer.checkOwners(ctx, t, d, killed)
}

// connectOwner connects client i, subscribed with the state.
func connectOwner(ctx context.Context, t *testing.T, b *testbed.Broker, i int) textconn.Conn {
	t.Helper()
	f, err := dialState(ctx, b, userOf(i), "tab", "table:3")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.conn.Close)
	return f.conn
}

// own publishes the field of client i, which owns it.
func own(ctx context.Context, t *testing.T, conn textconn.Conn, i int) {
	t.Helper()
	publish := fmt.Sprintf(`{"type":"publish","ref":9,"channel":"table:3","set":{"member/%s":{"seat":%d}},"own":true}`, userOf(i), i)
	if err := conn.Send(ctx, publish); err != nil {
		t.Fatal(err)
	}
}

// checkOwners checks the messages about each field.
func (f *follower) checkOwners(ctx context.Context, t *testing.T, d *deployment, killed time.Time) (away, gone []time.Duration) {
	t.Helper()
	f.Lock()
	defer f.Unlock()
	for i := range ownerCount {
		name := "member/" + userOf(i)
		var seen []string
		var awayAt time.Time
		for k, m := range f.messages {
			if m.Set[name] != nil {
				seen = append(seen, "set")
			}
			if until, is := m.Away[name]; is {
				if seen = append(seen, "away"); until <= 0 {
					t.Errorf("%s is away until %d", name, until)
				}
				awayAt = f.times[k]
				if i < ownerCount/2 {
					away = append(away, awayAt.Sub(killed))
				}
			}
			if slices.Contains(m.Back, name) {
				seen = append(seen, "back")
			}
			if reason := m.Gone[name]; reason != "" {
				seen = append(seen, "gone: "+reason)
				gone = append(gone, f.times[k].Sub(awayAt))
			}
		}
		got := fmt.Sprint(seen)
		if i < ownerCount/2 {
			if want := "[set away gone: left]"; got != want {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
		} else if got != "[set]" && got != "[set back]" && got != "[set away back]" {
			t.Errorf("%s: %s; its client came back at once", name, got)
		}
	}
	await.NoError(ctx, t, "the state of the channel", func() error {
		if fields := readState(ctx, t, d.brokers[2], "table:3", "member/"); len(fields) != ownerCount/2 {
			return fmt.Errorf("%d fields are left, want %d", len(fields), ownerCount/2)
		}
		return nil
	})
	return away, gone
}
