package binding

import (
	"context"

	"switchboard/internal/wire"
	"switchboard/queue"
	"switchboard/registry"
)

// Renewal renews one binding.
type Renewal struct {
	Binding
	Secret     queue.SecretHash    // of a client without a user
	Issued     int64               // when the token of a client with a user was issued, Unix ms
	Subscriber registry.Subscriber // the client, with the lists that its session has

	// Compared is whether only what the store has lost is written, and Lost what that may be.
	Compared bool
	Lost     Lost

	Lists registry.Subscriptions // set by Renew: of the subscriptions that the backend has made
	Err   error                  // set by Renew

	listed bool // the store has some Lists
}

// Lost says what the store may have lost of the binding of a client: its record, and its entry in
// the user's list of clients. The entry in this server's list may be lost in any case.
type Lost struct {
	Client       string
	Record, User bool
	// Renamed is set if the server has had another id, under which the client was bound. The user's
	// entry is then written without a comparison: a renewal may have written it already, without
	// notifying the servers that watch the user.
	Renamed bool
}

// Renew renews bindings in the store, under the server's current id. The caller holds the locks of
// the clients.
func (b *Binder) Renew(ctx context.Context, list []*Renewal) {
	server, clients := b.opts.ServerID(), make([]string, len(list))
	for i, r := range list {
		clients[i] = r.Client
	}
	if err := b.opts.Registry.HoldClients(ctx, server, clients); err != nil {
		for _, r := range list {
			r.Err = err
		}
		return
	}
	b.renewRecords(ctx, server, list)
	b.renewUsers(ctx, server, list)
	b.renewLists(ctx, list)
}

// renewRecords renews the records of the clients.
func (b *Binder) renewRecords(ctx context.Context, server string, list []*Renewal) {
	var held []queue.HeldClient
	var of []*Renewal // that of each entry of held
	for _, r := range list {
		if r.Compared && !r.Lost.Record {
			continue
		}
		h := queue.HeldClient{Client: r.Client, User: wire.UserOf(r.Client), Generation: r.Generation}
		if h.User == "" {
			h.Secret = r.Secret
		}
		held, of = append(held, h), append(of, r)
	}
	if len(held) == 0 {
		return
	}
	for i, err := range b.opts.Queue.RefreshClients(ctx, server, held) {
		of[i].Err = err
	}
}

// renewUsers renews the entries in the users' lists of clients.
func (b *Binder) renewUsers(ctx context.Context, server string, list []*Renewal) {
	var users, compared []registry.UserBinding
	var of, ofCompared []*Renewal
	for _, r := range list {
		user := wire.UserOf(r.Client)
		if r.Err != nil || user == "" || r.Compared && !r.Lost.User {
			continue
		}
		bound := registry.Binding{Client: r.Client, Server: server, Generation: r.Generation}
		entry := registry.UserBinding{User: user, Binding: bound, Issued: r.Issued}
		if r.Compared && !r.Lost.Renamed && !b.uncertainUsers.has(r.Client) {
			compared, ofCompared = append(compared, entry), append(ofCompared, r)
		} else {
			users, of = append(users, entry), append(of, r)
		}
	}
	if len(compared) > 0 {
		have, err := b.opts.Registry.UsersHave(ctx, compared)
		for i, r := range ofCompared {
			if r.Err = err; err == nil && !have[i] {
				users, of = append(users, compared[i]), append(of, r)
			}
		}
	}
	if len(users) == 0 {
		return
	}
	for i, err := range b.opts.Registry.BindUsers(ctx, users) {
		of[i].Err, of[i].listed = err, users[i].Subscribed
		if b.uncertainUsers.bound(users[i].Client, of[i].Compared, err) {
			b.opts.UserChanged(users[i].User, users[i].Watchers) // meanwhile the user seemed to be offline
		}
	}
}

// renewLists reads the lists of clients whose bindings were renewed, if they may have some.
func (b *Binder) renewLists(ctx context.Context, list []*Renewal) {
	var subscribers []registry.Subscriber
	var of []*Renewal
	for _, r := range list {
		if r.Err == nil && (r.listed || !r.Subscriber.Held.Empty()) {
			subscribers, of = append(subscribers, r.Subscriber), append(of, r)
		}
	}
	if len(subscribers) == 0 {
		return
	}
	for i, o := range b.opts.Registry.Subscriptions(ctx, subscribers) {
		of[i].Lists, of[i].Err = o.Subscriptions, o.Err
	}
}
