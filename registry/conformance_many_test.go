package registry

import (
	"errors"
	"fmt"
	"testing"
)

// testBatches makes calls for many clients and channels, some of which fail.
func testBatches(t *testing.T, s store) {
	ctx := t.Context()
	var clients, channels []string
	var list []UserBinding
	for i := range 600 { // more than fit into one call of the store
		clients, channels = append(clients, fmt.Sprint("c", i)), append(channels, fmt.Sprint("ch", i))
		list = append(list, UserBinding{User: fmt.Sprint("u", i), Binding: Binding{clients[i], "a", int64(i + 1)}})
	}
	ok(t, s.HoldClients(ctx, "a", clients))
	held, err := s.HeldClients(ctx, "a", 1000)
	ok(t, err)
	if len(held) != len(clients) {
		t.Errorf("%d clients are held, want %d", len(held), len(clients))
	}
	for i := range MaxClients {
		ok(t, bindUser(ctx, s, "u7", Binding{fmt.Sprint("other-", i), "b", 1}))
	}
	for i, err := range s.BindUsers(ctx, list) {
		if i == 7 {
			fails(t, err, ErrTooManyClients)
			continue
		}
		ok(t, err)
		want(t, []Binding{list[i].Binding})(s.User(ctx, list[i].User))
	}
	for i, err := range s.BindChannels(ctx, "a", channels) {
		ok(t, err)
		want(t, []string{"a"})(s.ChannelServers(ctx, channels[i]))
	}
	ok(t, s.UnbindChannel(ctx, "a", channels[3]))
	restored, errs := s.RebindChannels(ctx, "a", channels, none)
	ok(t, errors.Join(errs...))
	want(t, []string{channels[3]})(restored, nil)
	want(t, []string{"a"})(s.ChannelServers(ctx, channels[3]))

	want(t, true)(s.DeclareDead(ctx, "dead"))
	fails(t, s.HoldClients(ctx, "dead", clients), ErrDead)
	for i, err := range s.BindChannels(ctx, "dead", channels) {
		fails(t, err, ErrDead)
		want(t, []string{"a"})(s.ChannelServers(ctx, channels[i]))
	}
	if len(s.BindChannels(ctx, "a", nil))+len(s.BindUsers(ctx, nil)) != 0 || s.HoldClients(ctx, "a", nil) != nil {
		t.Error("empty batches return results or errors")
	}
}
