package queue

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/redispipe"
)

// BindClients makes a server the owner of each client, under a new generation, and stores the user
// in the record. The clients must differ from each other. A claim that fails does not affect the
// others. Concurrent calls share a run of the script.
//
// The id of a client with a user begins with the user, so the record belongs to that user. If an
// older version of the broker bound the client to another user, the queue is emptied.
//
// A client without a user is bound if its id is new, if it was pushed to but never bound, or if the
// claim has the secret of the last bind. Otherwise the error is ErrSecret. The error is ErrStale if
// a later attempt of the same instance of the client was bound, and ErrLate if the store executes
// the bind so late that the client may be connected elsewhere by now.
//
// The time of the claim is read here and not when the command is written: a connection may take
// seconds to open, and the caller may have given up by then.
func (r *Redis) BindClients(ctx context.Context, claims []Claim) []Outcome[Bound] {
	targets := make([]redispipe.Target, len(claims))
	now := any(askedArg(r.clock.minimum()))
	for i, c := range claims {
		asked := now
		if c.Asked != 0 {
			asked = decimal(c.Asked)
		}
		targets[i] = redispipe.Target{
			Script: r.bind, Keys: []string{r.keys.record(c.Client), r.keys.list(c.Client), r.keys.clientSubscriptions(c.Client)},
			Args: []any{c.User, c.Server, c.Instance, decimal(c.Attempt), storedSecret(c.User, c.Secret), asked},
		}
	}
	return outcomes(r, ctx, targets, func(reply *textReply) (b Bound, clock int64) {
		switch result, late := strings.CutPrefix(reply.rest, "-2\n"); {
		case late:
			reply.rest = result
			b.Asked, clock = reply.integer(), reply.integer()
			reply.err = cmp.Or(reply.err, ErrLate)
			return b, clock
		case result == "":
			reply.err = ErrSecret
		case result == "-1":
			reply.err = ErrStale
		}
		b.Generation, b.PrevGeneration, b.Acked, b.Queued, b.Last = reply.integer(), reply.integer(), reply.integer(), int(reply.integer()), reply.integer()
		clock = reply.integer()
		b.WithdrawalDue, b.Subscribed = reply.integer() == 1, reply.integer() == 1
		b.PrevServer = reply.text()
		return b, clock
	}, func(i int, err error) error { return fmt.Errorf("bind client %s: %w", claims[i].Client, err) })
}

// askedArg formats the time of a claim for the script, empty for an unknown one.
func askedArg(ms int64) string {
	if ms == 0 {
		return ""
	}
	return decimal(ms)
}

// storedSecret returns the secret's hash for the record, in hexadecimal. It is empty for a client
// with a user.
func storedSecret(user string, secret SecretHash) string {
	if user != "" {
		return ""
	}
	return hex.EncodeToString(secret[:])
}

// RefreshClients renews the TTL of each client's record and sets server as the owner, if the
// generation is the current one. The clients must differ from each other. If a failover lost the
// record or took it back to an older generation, RefreshClients restores it with this generation
// and secret. The error is ErrStale if a higher generation is current.
//
// A renewed record lives twice its TTL, and is renewed again when less than the TTL is left. With
// the defaults, a TTL of 150 min and a refresh every 30 min, that is about every fifth refresh. The
// others only read the record, with one Redis command instead of five.
func (r *Redis) RefreshClients(ctx context.Context, server string, list []HeldClient) []error {
	now, errs := r.clock.minimum(), make([]error, len(list))
	cmds := make([]redis.Cmder, len(list))
	for i, h := range list {
		cmds[i] = redis.NewSliceCmd(ctx, "hmget", r.keys.record(h.Client), "generation", "server", "until")
	}
	_ = r.pipe.DoAll(ctx, cmds) // each has its own error
	var targets []redispipe.Target
	var indexes []int
	for i, h := range list {
		record, err := cmds[i].(*redis.SliceCmd).Result()
		switch {
		case err != nil:
			errs[i] = fmt.Errorf("refresh client %s: %w", h.Client, err)
		case !r.upToDate(record, server, h.Generation, now):
			indexes = append(indexes, i)
			targets = append(targets, redispipe.Target{
				Script: r.refresh, Keys: r.clientKeys(h.Client),
				Args: []any{h.User, server, decimal(h.Generation), storedSecret(h.User, h.Secret)},
			})
		}
	}
	if len(targets) == 0 {
		return errs
	}
	for k, answer := range r.pipe.EvalEach(ctx, targets...) {
		err := answer.Err
		if err == nil && answer.Value != int64(1) {
			err = ErrStale
		}
		if err != nil {
			i := indexes[k]
			errs[i] = fmt.Errorf("refresh client %s: %w", list[i].Client, err)
		}
	}
	return errs
}

// upToDate reports whether a refresh of the record would change nothing: it has the server and the
// generation, and lives long enough. now is the minimum of the store's clock, 0 if unknown.
func (r *Redis) upToDate(record []any, server string, generation, now int64) bool {
	if now == 0 || len(record) != 3 || record[0] != decimal(generation) || record[1] != server {
		return false
	}
	text, _ := record[2].(string)
	until, err := strconv.ParseInt(text, 10, 64)
	return err == nil && until >= now+millis(r.opts.RecordTTL)
}

// Unbind ends the binding: the client is offline and its queue stays. The error is ErrStale or
// ErrForgotten if the generation is not the current one.
func (r *Redis) Unbind(ctx context.Context, client string, generation int64) error {
	done, err := r.pipe.EvalInt(ctx, unbindScript, []string{r.keys.record(client)}, decimal(generation))
	if err == nil {
		err = fenceError(done)
	}
	if err != nil {
		return fmt.Errorf("unbind client %s: %w", client, err)
	}
	return nil
}

// Release is Unbind for the janitor: it removes server as the owner of the client, and returns the
// client's user and the generation that it released. released is false if server is not the owner.
func (r *Redis) Release(ctx context.Context, client, server string) (user string, generation int64, released bool, err error) {
	reply, err := r.pipe.EvalArray(ctx, releaseScript, []string{r.keys.record(client)}, server)
	if err != nil {
		return "", 0, false, fmt.Errorf("release client %s: %w", client, err)
	}
	if reply.Len() == 0 {
		return "", 0, false, nil
	}
	user, generation = reply.Text(), reply.Int()
	if reply.Err != nil {
		return "", 0, false, fmt.Errorf("release client %s: %w", client, reply.Err)
	}
	return user, generation, true, nil
}

// Client returns the client's record. known is false if there is none.
func (r *Redis) Client(ctx context.Context, client string) (c Client, known bool, err error) {
	reply, err := r.pipe.EvalArray(ctx, clientScript, r.clientKeys(client))
	if err != nil {
		return Client{}, false, fmt.Errorf("look up client %s: %w", client, err)
	}
	if reply.Len() == 0 {
		return Client{}, false, nil
	}
	c = Client{User: reply.Text(), Server: reply.Text(), Generation: reply.Int()}
	if since := reply.Int(); since > 0 {
		c.Since = time.UnixMilli(since)
	}
	c.Queued, c.Last, c.Acked = int(reply.Int()), reply.Int(), reply.Int()
	if secret, err := hex.DecodeString(reply.Text()); err == nil {
		copy(c.Secret[:], secret)
	}
	if reply.Err != nil {
		return Client{}, false, fmt.Errorf("look up client %s: %w", client, reply.Err)
	}
	return c, true, nil
}

// AppendClient stores a message in the client's list, drops the oldest messages beyond the cap,
// which moves the floor, and returns the owner. An unknown client gets a record without user and
// owner, so that it finds the message when it connects.
func (r *Redis) AppendClient(ctx context.Context, push ClientPush) (ClientAppended, error) {
	o := r.AppendClients(ctx, []ClientPush{push})[0]
	return o.Value, o.Err
}

// AppendClients stores each push like AppendClient, in as few round trips as possible, in no
// particular order.
func (r *Redis) AppendClients(ctx context.Context, pushes []ClientPush) []Outcome[ClientAppended] {
	targets := make([]redispipe.Target, len(pushes))
	for i, push := range pushes {
		keys := r.clientKeys(push.Client)
		if push.Key != "" {
			keys = append(keys, r.keys.clientKey(push.Client, push.Key))
		}
		ttl := ""
		if push.TTL != 0 {
			ttl = ttlArg(push.TTL)
		}
		targets[i] = redispipe.Target{Script: r.appendClient.of(push), Keys: keys, Args: []any{push.Data, push.User, ttl}}
		if push.AckGroup != "" {
			t := &targets[i]
			t.Script, t.Keys = r.appendGrouped.of(push), append(keys, r.keys.groups(push.Client))
			t.Args = append(t.Args, push.AckGroup)
		}
	}
	return outcomes(r, ctx, targets, func(reply *textReply) (a ClientAppended, clock int64) {
		if reply.empty() {
			reply.err = ErrUnknownClient
			return a, 0
		}
		a.ID, a.Prev, a.Duplicate, clock = reply.integer(), reply.integer(), reply.integer() == 1, reply.integer()
		a.Generation, a.Server = reply.integer(), reply.text()
		return a, clock
	}, func(i int, err error) error { return fmt.Errorf("append to client %s: %w", pushes[i].Client, err) })
}

// Window returns up to limit messages with ids above after, out of the first MaxWindow messages of
// the list. The error is ErrStale or ErrForgotten if the generation is not the current one. A
// Page.Floor above after means that messages were lost to the cap or the TTL; Page.Complete is
// false then. More without Messages means that all messages of the window are in flight: read again
// after an Ack.
func (r *Redis) Window(ctx context.Context, client string, generation, after int64, limit int) (Page, error) {
	for {
		page, malformed, err := r.window(ctx, client, decimal(generation), after, limit, MaxWindow, MaxWindowBytes)
		for i := 0; err == nil && i < len(malformed); i++ {
			err = r.pipe.Do(ctx, redis.NewIntCmd(ctx, "lrem", r.keys.list(client), 1, malformed[i]))
		}
		if err != nil {
			return Page{}, fmt.Errorf("window of client %s: %w", client, err)
		}
		if len(malformed) == 0 || len(page.Messages) > 0 {
			return page, nil
		}
	}
}

// ReadClient returns up to limit messages with ids above after, out of the first maxRead messages
// of the list, for a reader that is not the client: it needs no generation and changes nothing. The
// error is ErrForgotten if the client is unknown. Floor, Complete and More are as for Window.
func (r *Redis) ReadClient(ctx context.Context, client string, after int64, limit int) (Page, error) {
	page, _, err := r.window(ctx, client, "", after, limit, maxRead, MaxPageBytes)
	if err != nil {
		return Page{}, fmt.Errorf("read the queue of client %s: %w", client, err)
	}
	return page, nil
}

// window runs the script once. It returns malformed elements too. If the page is for the client,
// the caller must remove them: no client acknowledges them, so they would stay in the window.
func (r *Redis) window(
	ctx context.Context, client, generation string, after int64, limit, window, bytes int,
) (page Page, malformed []string, err error) {
	reply, err := r.pipe.EvalArray(ctx, windowScript, r.clientKeys(client),
		generation, decimal(after), limit, window, bytes)
	if err == nil && reply.Len() == 1 {
		err = fenceError(reply.Int())
	}
	if err != nil {
		return Page{}, nil, err
	}
	page = Page{Floor: reply.Int(), Last: reply.Int(), More: reply.Int() == 1}
	page.Complete = after >= page.Floor
	page.Messages, malformed = decode(reply.Texts(), DecodeMember)
	return page, malformed, reply.Err
}

// fenceError returns the error for the negative result of a script that checks the generation.
func fenceError(result int64) error {
	switch result {
	case -1:
		return ErrStale
	case -2:
		return ErrForgotten
	}
	return nil
}

// clientKeys returns the record and the list of a client, in the order of all scripts.
func (r *Redis) clientKeys(client string) []string {
	return []string{r.keys.record(client), r.keys.list(client)}
}
