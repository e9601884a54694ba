package queue

import (
	"context"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/redispipe"
)

// BindClients implements [Queue]. Concurrent calls share a run of the script.
func (r *Redis) BindClients(ctx context.Context, claims []Claim) []Outcome[Bound] {
	targets := make([]redispipe.Target, len(claims))
	for i, c := range claims {
		targets[i] = redispipe.Target{Group: r.bind, Keys: r.clientKeys(c.Client), Args: []any{c.User, c.Server, c.Instance, decimal(c.Attempt), kept(c.User, c.Secret)}}
	}
	return outcomes(r, ctx, targets, func(l *line) (b Bound, clock int64) {
		switch l.left {
		case "":
			l.err = ErrSecret
		case "-1":
			l.err = ErrStale
		}
		b.Generation, b.Before, b.Acked, b.Queued, b.Last = l.integer(), l.integer(), l.integer(), int(l.integer()), l.integer()
		clock = l.integer()
		b.Owes = l.integer() == 1
		b.Server = l.text()
		return b, clock
	}, func(i int, err error) error { return fmt.Errorf("bind client %s: %w", claims[i].Client, err) })
}

// kept is what the record keeps of a secret: hexadecimal, so that it can be read; nothing with a
// user.
func kept(user string, secret SecretHash) string {
	if user != "" {
		return ""
	}
	return hex.EncodeToString(secret[:])
}

// RefreshClients implements [Queue]. Mostly there is nothing to do, and to see that takes one command of Redis instead of
// five: a record that was renewed lives twice its TTL, so each is renewed once in some five refreshes.
func (r *Redis) RefreshClients(ctx context.Context, server string, list []Held) []error {
	now, errs := r.horizon.least(), make([]error, len(list))
	cmds := make([]redis.Cmder, len(list))
	for i, h := range list {
		cmds[i] = redis.NewSliceCmd(ctx, "hmget", r.keys.record(h.Client), "generation", "server", "until")
	}
	_ = r.pipe.DoAll(ctx, cmds) // each has its own error
	var targets []redispipe.Target
	var of []int
	for i, h := range list {
		record, err := cmds[i].(*redis.SliceCmd).Result()
		switch {
		case err != nil:
			errs[i] = fmt.Errorf("refresh client %s: %w", h.Client, err)
		case !r.lasts(record, server, h.Generation, now):
			of = append(of, i)
			targets = append(targets, redispipe.Target{
				Group: r.refresh, Keys: r.clientKeys(h.Client), Args: []any{h.User, server, decimal(h.Generation), kept(h.User, h.Secret)},
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
			errs[of[k]] = fmt.Errorf("refresh client %s: %w", list[of[k]].Client, err)
		}
	}
	return errs
}

// lasts says whether a record is as RefreshClients would leave it, and for as long as it has to be.
// now is the store's clock, 0 when it is not known.
func (r *Redis) lasts(record []any, server string, generation, now int64) bool {
	if now == 0 || len(record) != 3 || record[0] != decimal(generation) || record[1] != server {
		return false
	}
	text, _ := record[2].(string)
	until, err := strconv.ParseInt(text, 10, 64)
	return err == nil && until >= now+millis(r.opts.RecordTTL)
}

// Unbind implements [Queue].
func (r *Redis) Unbind(ctx context.Context, client string, generation int64) error {
	done, err := r.evalInt(ctx, unbindScript, []string{r.keys.record(client)}, decimal(generation))
	if err == nil {
		err = fence(done)
	}
	if err != nil {
		return fmt.Errorf("unbind client %s: %w", client, err)
	}
	return nil
}

// Release implements [Queue].
func (r *Redis) Release(ctx context.Context, client, server string) (user string, generation int64, released bool, err error) {
	reply, err := r.eval(ctx, releaseScript, []string{r.keys.record(client)}, server)
	if err != nil {
		return "", 0, false, fmt.Errorf("release client %s: %w", client, err)
	}
	if reply.empty() {
		return "", 0, false, nil
	}
	user, generation = reply.text(), reply.integer()
	if reply.err != nil {
		return "", 0, false, fmt.Errorf("release client %s: %w", client, reply.err)
	}
	return user, generation, true, nil
}

// Client implements [Queue].
func (r *Redis) Client(ctx context.Context, client string) (c Client, known bool, err error) {
	reply, err := r.eval(ctx, clientScript, r.clientKeys(client))
	if err != nil {
		return Client{}, false, fmt.Errorf("look up client %s: %w", client, err)
	}
	if reply.empty() {
		return Client{}, false, nil
	}
	c = Client{User: reply.text(), Server: reply.text(), Generation: reply.integer()}
	if since := reply.integer(); since > 0 {
		c.Since = time.UnixMilli(since)
	}
	c.Queued, c.Last, c.Acked = int(reply.integer()), reply.integer(), reply.integer()
	if reply.err != nil {
		return Client{}, false, fmt.Errorf("look up client %s: %w", client, reply.err)
	}
	return c, true, nil
}

// AppendClient implements [Queue].
func (r *Redis) AppendClient(ctx context.Context, push ClientPush) (ClientAppended, error) {
	o := r.AppendClients(ctx, []ClientPush{push})[0]
	return o.Value, o.Err
}

// AppendClients implements [Queue].
func (r *Redis) AppendClients(ctx context.Context, pushes []ClientPush) []Outcome[ClientAppended] {
	targets := make([]redispipe.Target, len(pushes))
	for i, push := range pushes {
		keys := r.clientKeys(push.Client)
		if push.Key != "" {
			keys = append(keys, r.keys.clientKey(push.Client, push.Key))
		}
		ttl := ""
		if push.TTL != 0 {
			ttl = decimal(millis(push.TTL))
		}
		targets[i] = redispipe.Target{Group: group(r.appendClient, push.Durable), Keys: keys, Args: []any{push.Data, push.User, ttl}}
		if push.First != "" {
			t := &targets[i]
			t.Group, t.Keys, t.Args = group(r.appendFirst, push.Durable), append(keys, r.keys.firsts(push.Client)), append(t.Args, push.First)
		}
	}
	return outcomes(r, ctx, targets, func(l *line) (a ClientAppended, clock int64) {
		if l.empty() {
			l.err = ErrUnknownClient
			return a, 0
		}
		a.ID, a.Prev, a.Duplicate, clock = l.integer(), l.integer(), l.integer() == 1, l.integer()
		a.Generation, a.Server = l.integer(), l.text()
		return a, clock
	}, func(i int, err error) error { return fmt.Errorf("append to client %s: %w", pushes[i].Client, err) })
}

// Window implements [Queue].
func (r *Redis) Window(ctx context.Context, client string, generation, after int64, limit int) (Page, error) {
	for {
		page, malformed, err := r.window(ctx, client, generation, after, limit)
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

// window is one run of the script. What is malformed would stay in the window for good,
// since nobody acknowledges it.
func (r *Redis) window(ctx context.Context, client string, generation, after int64, limit int) (Page, []string, error) {
	reply, err := r.eval(ctx, windowScript, r.clientKeys(client),
		decimal(generation), decimal(after), limit, MaxWindow, MaxPageBytes)
	if err == nil && len(reply.rest) == 1 {
		err = fence(reply.integer())
	}
	if err != nil {
		return Page{}, nil, err
	}
	page := Page{Floor: reply.integer(), Last: reply.integer(), More: reply.integer() == 1}
	page.Complete = after >= page.Floor
	var malformed []string
	page.Messages, malformed = decode(reply.texts())
	return page, malformed, reply.err
}

// fence is the error that a fenced script returns as a negative number.
func fence(result int64) error {
	switch result {
	case -1:
		return ErrStale
	case -2:
		return ErrForgotten
	}
	return nil
}

// clientKeys are the two keys of a client, in the order of every script that takes both.
func (r *Redis) clientKeys(client string) []string {
	return []string{r.keys.record(client), r.keys.list(client)}
}
