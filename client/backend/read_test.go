package backend_test

import (
	"errors"
	"strings"
	"testing"

	"switchboard/client"
	"switchboard/client/backend"
)

func TestReads(t *testing.T) {
	sb, address := start(t)
	connect(t, address, "alice", "phone", "news")
	connect(t, address, "bob", "tab", "news")
	ctx := t.Context()
	push, err := sb.Push(ctx, backend.Push{Channel: "news", Data: 1})
	if err != nil {
		t.Fatal(err)
	}

	channels, err := sb.Channels(ctx, backend.PageQuery{Prefix: "ne"})
	if err != nil || len(channels.Channels) != 1 || channels.Channels[0] != (backend.ChannelCount{Channel: "news", Subscribers: 2}) {
		t.Errorf("channels: %+v, %v", channels, err)
	}
	if c, err := sb.Channel(ctx, "news"); err != nil || c.ID != push[0].ID || c.Messages != 1 || c.Subscribers != 2 {
		t.Errorf("channel: %+v, %v", c, err)
	}
	presence := eventually(t, "two members", func() (backend.PresencePage, error) {
		return sb.Presence(ctx, "news", backend.PageQuery{Limit: 1})
	}, func(p backend.PresencePage) bool { return p.Count == 2 })
	if len(presence.Clients) != 1 || presence.Cursor == "" || presence.Next != presence.Cursor || presence.Users == nil || *presence.Users != 2 {
		t.Errorf("presence: %+v", presence)
	}
	rest, err := sb.Presence(ctx, "news", backend.PageQuery{Cursor: presence.Cursor})
	if err != nil || len(rest.Clients) != 1 || rest.Clients[0].User == presence.Clients[0].User || rest.Cursor+rest.Next != "" {
		t.Errorf("the second page: %+v, %v", rest, err)
	}
	if count, err := sb.PresenceCount(ctx, "news"); err != nil || count.Count != 2 || len(count.Clients) != 0 {
		t.Errorf("the count: %+v, %v", count, err)
	}
	if u, err := sb.User(ctx, "alice"); err != nil || !u.Online || len(u.Clients) != 1 || u.Clients[0].Client != "alice/phone" {
		t.Errorf("user: %+v, %v", u, err)
	}
	if users, err := sb.Users(ctx, backend.PageQuery{}); err != nil || len(users.Users) != 2 || len(users.Users[0].Clients) != 1 {
		t.Errorf("users: %+v, %v", users, err)
	}
	// The counts are those of the last heartbeat.
	count := eventually(t, "two users are counted", func() (backend.UserPage, error) { return sb.UserCount(ctx) },
		func(p backend.UserPage) bool { return p.Count == 2 && p.Connections == 2 })
	if len(count.Users) != 0 {
		t.Errorf("the count of users: %+v", count)
	}
	if online, err := sb.Online(ctx, "alice", "carol"); err != nil || !online["alice"] || online["carol"] {
		t.Errorf("online: %v, %v", online, err)
	}
	if c, err := sb.Client(ctx, "alice/phone"); err != nil || c.User != "alice" || c.Address == "" || len(c.Channels) != 1 {
		t.Errorf("client: %+v, %v", c, err)
	}
	_, err = sb.Client(ctx, "carol/tab")
	if refused, ok := errors.AsType[*backend.Error](err); !ok || refused.Code != client.NotFound || refused.Status != 404 {
		t.Errorf("an unknown client: %v", err)
	}
	if servers, err := sb.Servers(ctx); err != nil || len(servers) != 1 || servers[0].Server == "" {
		t.Errorf("servers: %+v, %v", servers, err)
	}
	if err := sb.Notify(ctx, []string{"news"}, []string{"alice/phone"}); err != nil {
		t.Error(err)
	}
	if err := sb.Reply(ctx, "alice/phone", 7, map[string]int{"n": 1}); err != nil {
		t.Error(err)
	}
	if _, err := sb.RevokeUser(ctx, "alice", backend.Revocation{}); err == nil || !strings.Contains(err.Error(), "takes no tokens") { // an open broker
		t.Errorf("revoke tokens: %v", err)
	}
	if n, err := sb.DisconnectClient(ctx, "bob/tab"); err != nil || n != 1 {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := sb.DisconnectUser(ctx, "nobody"); err != nil || n != 0 {
		t.Errorf("%d, %v", n, err)
	}
}
