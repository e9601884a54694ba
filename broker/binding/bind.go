package binding

import (
	"context"
	"errors"
	"slices"
	"sync"

	"switchboard/queue"
	"switchboard/registry"
)

// ErrGone is the error of a claim whose connection has closed.
var ErrGone = errors.New("binding: the client left before it was bound")

// Result is the result of one claim. Its Pending is nil if the client was not bound; otherwise
// [Binder.End] must follow.
type Result struct {
	Bound   queue.Bound
	Pending *Pending
	Lists   registry.Subscriptions // that the backend has made
	Err     error
}

// Bind binds clients to this server. The caller holds their locks. No two claims are of the same
// client. issued has when the token of each was issued, Unix ms. Bind first writes the entries
// in s_c_ by which the janitor finds the clients, then the fenced bindings, and then the users'
// lists of clients. A token that was revoked is refused in the first step, so that it ends no other
// connection of the client, and again in the last one.
//
// gone returns whether the connection of a claim has closed. The store may have taken long for the
// first step. A page that was reloaded meanwhile is connected elsewhere under the same client, and
// a bind of its former connection would end the new one for good. So such a claim gets
// ErrGone.
func (b *Binder) Bind(ctx context.Context, claims []queue.Claim, issued []int64, gone func(i int) bool) []Result {
	server, out, clients := b.opts.ServerID(), make([]Result, len(claims)), make([]string, len(claims))
	for i := range claims {
		claims[i].Server = server
		clients[i] = claims[i].Client
	}
	refused := b.hold(ctx, server, clients, claims, issued)
	waiting := make([]int, 0, len(claims)) // indexes of the claims without a result
	for i, client := range clients {
		if refused != nil && refused[i] != nil {
			b.unconfirmed.add(client, server)
			out[i].Err = refused[i]
			continue
		}
		waiting = append(waiting, i)
		out[i].Pending = b.pending.begin(client)
	}
	for len(waiting) > 0 {
		waiting = slices.DeleteFunc(waiting, func(i int) bool {
			if !gone(i) {
				return false
			}
			b.pending.end(clients[i], out[i].Pending)
			b.unconfirmed.add(clients[i], server) // its entry in s_c_ is to be removed
			out[i] = Result{Err: ErrGone}
			return true
		})
		waiting = b.bindWaiting(ctx, claims, waiting, out)
	}
	b.bindUsers(ctx, claims, issued, out)
	b.completeWithdrawals(ctx, claims, out)
	return out
}

// bindWaiting makes the bindings of the claims with these indexes. It returns the indexes of those
// that the store found late, and changes their claims so that they are not late any more. The
// caller repeats them, unless the connection has closed.
func (b *Binder) bindWaiting(ctx context.Context, claims []queue.Claim, waiting []int, out []Result) (late []int) {
	list := claims
	if len(waiting) < len(claims) {
		list = make([]queue.Claim, len(waiting))
		for k, i := range waiting {
			list[k] = claims[i]
		}
	}
	for k, o := range b.opts.Queue.BindClients(ctx, list) {
		i := waiting[k]
		switch c := &claims[i]; {
		case o.Err == nil:
			b.pending.bound(out[i].Pending, o.Value.Generation)
			out[i].Bound = o.Value
		case errors.Is(o.Err, queue.ErrLate) && ctx.Err() == nil:
			c.Asked = o.Value.Asked
			late = append(late, i)
		default:
			b.pending.end(c.Client, out[i].Pending)
			b.bindFailed(ctx, c.Client, c.Server, o.Err)
			out[i] = Result{Bound: o.Value, Err: o.Err}
		}
	}
	return late
}

// bindFailed cleans up after a failed bind. If the secret was refused, nothing was bound: the entry
// in s_c_ is removed, unless the store has the client bound to this server. After any other
// error the bind is unconfirmed.
func (b *Binder) bindFailed(ctx context.Context, client, server string, failed error) {
	if errors.Is(failed, queue.ErrSecret) {
		here, err := b.holds(ctx, client)
		if err == nil && !here {
			err = b.dropClient(ctx, server, client)
		}
		if err == nil {
			return
		}
	}
	b.unconfirmed.add(client, server)
}

// bindUsers adds bound clients to their users' lists, and reads the subscriptions that the backend
// has made for them. It unbinds the clients for which that fails.
func (b *Binder) bindUsers(ctx context.Context, claims []queue.Claim, issued []int64, out []Result) {
	var list []registry.UserBinding
	var at []int // the index in out of each entry of list
	for i := range out {
		if c, o := &claims[i], &out[i]; o.Err == nil && c.User != "" {
			ub := registry.Binding{Client: c.Client, Server: c.Server, Generation: o.Bound.Generation}
			list, at = append(list, registry.UserBinding{User: c.User, Binding: ub, Issued: issued[i]}), append(at, i)
		}
	}
	if len(list) > 0 {
		for k, err := range b.opts.Registry.BindUsers(ctx, list) {
			// For a client without a user, BindClients has set Subscribed.
			out[at[k]].Err, out[at[k]].Bound.Subscribed = err, list[k].Subscribed
			b.opts.UserChanged(list[k].User, list[k].Watchers)
		}
	}
	b.readLists(ctx, claims, out)
	for i := range out {
		if o := &out[i]; o.Err != nil && o.Pending != nil {
			b.UnbindLater(Binding{Client: claims[i].Client, Generation: o.Bound.Generation})
		}
	}
}

// completeWithdrawals completes withdrawals that were interrupted. An acknowledgement withdraws the
// same messages from the user's other clients. If a server died or the store failed in between, the
// next bind reports that the withdrawal is due. Repeating the acknowledgement completes it.
func (b *Binder) completeWithdrawals(ctx context.Context, claims []queue.Claim, out []Result) {
	due := func(o Result) bool { return o.Pending != nil && o.Bound.WithdrawalDue }
	if !slices.ContainsFunc(out, due) {
		return
	}
	var calls sync.WaitGroup
	for i, o := range out {
		if due(o) {
			calls.Go(func() {
				if _, err := b.opts.Queue.Ack(ctx, claims[i].Client, o.Bound.Generation, o.Bound.Acked); err != nil {
					b.opts.Logger.Warn().Err(err).Msg("withdrawal failed; the client's next acknowledgement tries again")
				}
			})
		}
	}
	calls.Wait()
}

// readLists reads the lists of clients that were bound, if they may have some. It sets the errors
// of those for which that fails.
func (b *Binder) readLists(ctx context.Context, claims []queue.Claim, out []Result) {
	var list []registry.Subscriber
	var at []int // the index in out of each entry of list
	for i := range claims {
		if c := &claims[i]; out[i].Err == nil && out[i].Bound.Subscribed {
			if list == nil { // a store in memory has all clients here
				list, at = make([]registry.Subscriber, 0, len(claims)-i), make([]int, 0, len(claims)-i)
			}
			list, at = append(list, registry.Subscriber{User: c.User, Client: c.Client}), append(at, i)
		}
	}
	if len(list) == 0 {
		return
	}
	for k, o := range b.opts.Registry.Subscriptions(ctx, list) {
		out[at[k]].Lists, out[at[k]].Err = o.Subscriptions, o.Err
	}
}

// hold adds the clients, which are those of the claims, to s_c_. In the same round trip it checks
// whether their tokens were revoked. It returns an error for each claim, or nil if there is none.
func (b *Binder) hold(ctx context.Context, server string, clients []string, claims []queue.Claim, issued []int64) []error {
	var list []registry.UserBinding // the claims with a token
	var at []int                    // the index in claims of each entry of list
	for i := range claims {
		if c := &claims[i]; c.User != "" && b.opts.Tokens {
			list = append(list, registry.UserBinding{User: c.User, Binding: registry.Binding{Client: c.Client}, Issued: issued[i]})
			at = append(at, i)
		}
	}
	if len(list) == 0 {
		if err := b.opts.Registry.HoldClients(ctx, server, clients); err != nil {
			return slices.Repeat([]error{err}, len(claims))
		}
		return nil
	}
	checked := b.checkTokens(ctx, list)
	err := b.opts.Registry.HoldClients(ctx, server, clients)
	var errs []error
	for k, refused := range <-checked {
		if refused != nil && errs == nil {
			errs = make([]error, len(claims))
		}
		if refused != nil {
			errs[at[k]] = refused
		}
	}
	if err != nil {
		errs = slices.Repeat([]error{err}, len(claims))
	}
	return errs
}

// checkTokens checks tokens in a goroutine, and sends the errors to checked.
func (b *Binder) checkTokens(ctx context.Context, list []registry.UserBinding) (checked <-chan []error) {
	c := make(chan []error, 1)
	go func() { c <- b.opts.Registry.CheckTokens(ctx, list) }()
	return c
}
