package registry

import (
	"fmt"
	"testing"
)

// testCompareHeld checks HeldCounts and HoldsChannels.
func testCompareHeld(t *testing.T, s store) {
	ctx := t.Context()
	counts := func(server string, channels, clients int) {
		t.Helper()
		gotChannels, gotClients, err := s.HeldCounts(ctx, server)
		if ok(t, err); gotChannels != channels || gotClients != clients {
			t.Errorf("server %s holds %d channels and %d clients, want %d and %d", server, gotChannels, gotClients, channels, clients)
		}
	}
	counts("a", 0, 0)
	want(t, []bool{})(s.HoldsChannels(ctx, "a", nil))
	want(t, []bool{false})(s.HoldsChannels(ctx, "a", []string{"news"}))

	var all []string
	var holds []bool
	for i := range 2*comparedPerCommand + 2 {
		channel := fmt.Sprint("channel-", i)
		all, holds = append(all, channel), append(holds, i%3 == 0)
		if i%3 == 0 {
			ok(t, s.BindChannel(ctx, "a", channel))
		} else {
			ok(t, s.BindChannel(ctx, "b", channel))
		}
	}
	ok(t, s.HoldClients(ctx, "a", []string{"ann/phone", "ann/tv"}))
	counts("a", 86, 2)
	counts("b", 172, 0)
	want(t, holds)(s.HoldsChannels(ctx, "a", all))
	ok(t, s.UnbindChannel(ctx, "a", "channel-0"))
	ok(t, s.DropClient(ctx, "a", "ann/tv"))
	counts("a", 85, 1)
	want(t, []bool{false, false, true})(s.HoldsChannels(ctx, "a", []string{"channel-0", "channel-1", "channel-3"}))
}

// testRosterVersions checks that RosterVersions returns the versions of Roster.
func testRosterVersions(t *testing.T, s store) {
	ctx := t.Context()
	first := change(t, s, "a", PresenceChange{Join: []Member{{Client: "pad"}}})
	channels := []string{"none", "news"}
	want(t, []int64{0, first.Version})(s.RosterVersions(ctx, "a", channels))
	second := change(t, s, "a", PresenceChange{Join: []Member{{Client: "tv"}}})
	want(t, []int64{0, second.Version})(s.RosterVersions(ctx, "a", channels))
	want(t, []int64{0, 0})(s.RosterVersions(ctx, "b", channels))
	change(t, s, "a", PresenceChange{Leave: leaves("pad", "tv")})
	want(t, []int64{0, 0})(s.RosterVersions(ctx, "a", channels))
	want(t, []int64{})(s.RosterVersions(ctx, "a", nil))
}
