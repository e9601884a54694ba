package broker_test

import (
	"slices"
	"testing"

	"switchboard/broker"
	"switchboard/internal/await"
)

// TestServerOfAFormerVersion checks that a server whose beats write only s_list and its entry is
// live for as long as it has a lease, beside a server of this version.
func TestServerOfAFormerVersion(t *testing.T) {
	t.Parallel()
	client := shared.Client(t)
	s, prefix := redisStore(t, client, testBeat)
	i := start(t, s, func(o *broker.Options) { o.Timing.Beat = testBeat })
	i.awaitReady(t, 200)
	live := func() bool {
		return slices.ContainsFunc(i.liveServers(), func(id string) bool { return id == "former" })
	}
	lease := prefix + "s_{former}"
	for range 2 {
		if err := client.HSet(t.Context(), lease, "host", "127.0.0.1:1", "version", "0.9").Err(); err != nil {
			t.Fatal(err)
		}
		if err := client.SAdd(t.Context(), prefix+"s_list", "former").Err(); err != nil {
			t.Fatal(err)
		}
		await.True(t, "the server is live", live)
		if err := client.Del(t.Context(), lease).Err(); err != nil {
			t.Fatal(err)
		}
		await.True(t, "the server is not live", func() bool { return !live() })
	}
	if n := len(i.liveServers()); n != 1 {
		t.Errorf("%d servers are live, want 1", n)
	}
}

// liveServers returns the ids of the servers that were live at the last beat.
func (i instance) liveServers() (ids []string) {
	for _, s := range i.Servers() {
		ids = append(ids, s.ID)
	}
	return ids
}
