package queue

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/redispipe"
)

//go:embed lua/*.lua
var luaFiles embed.FS

var (
	appendChannelScript  = redispipe.MustScript(luaFiles, "append_channel")
	readChannelScript    = redispipe.MustScript(luaFiles, "read_channel")
	trimChannelScript    = redispipe.MustScript(luaFiles, "trim_channel")
	bindScript           = redispipe.MustScript(luaFiles, "bind")
	refreshScript        = redispipe.MustScript(luaFiles, "refresh")
	unbindScript         = redispipe.MustScript(luaFiles, "unbind")
	releaseScript        = redispipe.MustScript(luaFiles, "release")
	clientScript         = redispipe.MustScript(luaFiles, "client")
	appendClientScript   = redispipe.MustScript(luaFiles, "append_client")
	windowScript         = redispipe.MustScript(luaFiles, "window")
	ackScript            = redispipe.MustScript(luaFiles, "ack")
	confirmChannelScript = redispipe.MustScript(luaFiles, "confirm_channel")
	confirmClientScript  = redispipe.MustScript(luaFiles, "confirm_client")
	deleteGroupsScript   = redispipe.MustScript(luaFiles, "delete_groups")
	withdrawScript       = redispipe.MustScript(luaFiles, "withdraw")
	pushRequestScript    = redispipe.MustScript(luaFiles, "push_request")
)

// Redis is the queue that several servers share. Each call is one script in one slot, so a
// condition that a call checks still holds when it writes. Its methods are safe for concurrent use,
// and concurrent calls share round trips.
type Redis struct {
	pipe *redispipe.Pipe
	opts Options
	keys keys

	// The groups of appends: plain, durable, and for channels with ExistingOnly.
	appendClient  [2]*redispipe.BatchScript
	appendGrouped [2]*redispipe.BatchScript // to clients, with AckGroup
	appendChannel [3]*redispipe.BatchScript
	appendBounded sync.Map // [3]*redispipe.BatchScript by bounds: to channels, with Cap or TTL

	bind, refresh, read, ack, withdraw *redispipe.BatchScript

	clock storeClock
}

// NewRedis returns the queues over pipe. opts must be valid.
func NewRedis(pipe *redispipe.Pipe, opts Options) *Redis {
	opts = opts.withDefaults()
	r := &Redis{pipe: pipe, opts: opts, keys: keys{opts.Prefix}}
	ttl := func(d time.Duration) any { return decimal(millis(d)) }
	r.bind = &redispipe.BatchScript{Script: bindScript, Shared: []any{ttl(opts.RecordTTL), &r.clock}}
	r.refresh = &redispipe.BatchScript{Script: refreshScript, Shared: []any{ttl(opts.RecordTTL), &r.clock}}
	r.read = &redispipe.BatchScript{Script: readChannelScript, Shared: []any{strconv.Itoa(MaxPageBytes)}}
	r.ack = &redispipe.BatchScript{Script: ackScript}
	r.withdraw = &redispipe.BatchScript{Script: withdrawScript}
	r.appendChannel = r.channelAppends(bounds{opts.ChannelCap, opts.ChannelTTL})
	for i, durable := range []any{"0", "1"} {
		shared := []any{
			strconv.Itoa(opts.ClientCap), ttl(opts.ClientTTL), ttl(opts.RecordTTL), ttl(opts.KeyTTL),
			&r.clock, durable, replaced(opts.Replaced),
		}
		r.appendClient[i] = &redispipe.BatchScript{Script: appendClientScript, Durable: i == 1, Shared: append(slices.Clone(shared), "3")}
		r.appendGrouped[i] = &redispipe.BatchScript{Script: appendClientScript, Durable: i == 1, Shared: append(shared, "4")}
	}
	return r
}

// bounds is the cap and TTL of a channel.
type bounds struct {
	cap int
	ttl time.Duration
}

// channelAppends makes the groups of appends to channels with these bounds.
func (r *Redis) channelAppends(b bounds) (groups [3]*redispipe.BatchScript) {
	ttl := func(d time.Duration) any { return decimal(millis(d)) }
	for i, kind := range []any{"0", "1", "2"} {
		groups[i] = &redispipe.BatchScript{Script: appendChannelScript, Durable: i == 1, Shared: []any{
			strconv.Itoa(b.cap), decimal(r.opts.ChannelMaxBytes), ttl(b.ttl), ttl(b.ttl + r.opts.MetaTTL), ttl(r.opts.KeyTTL), &r.clock, kind,
		}}
	}
	return groups
}

// channelGroup returns the group of a push.
func (r *Redis) channelGroup(push ChannelPush) *redispipe.BatchScript {
	groups := r.channelGroups(push)
	switch {
	case push.Durable:
		return groups[1]
	case push.ExistingOnly:
		return groups[2]
	}
	return groups[0]
}

// channelGroups returns the groups of pushes with the same bounds. There are only as many as
// namespaces have different bounds.
func (r *Redis) channelGroups(push ChannelPush) [3]*redispipe.BatchScript {
	if push.Cap == 0 && push.TTL == 0 {
		return r.appendChannel
	}
	b := bounds{
		min(cmp.Or(push.Cap, r.opts.ChannelCap), r.opts.ChannelCap),
		min(cmp.Or(push.TTL, r.opts.ChannelTTL), max(r.opts.ChannelTTL, MaxChannelTTL)),
	}
	groups, found := r.appendBounded.Load(b)
	if !found {
		groups, _ = r.appendBounded.LoadOrStore(b, r.channelAppends(b))
	}
	return groups.([3]*redispipe.BatchScript)
}

// group returns the group of a push.
func group(groups [2]*redispipe.BatchScript, durable bool) *redispipe.BatchScript {
	if durable {
		return groups[1]
	}
	return groups[0]
}

// PushRequest appends a client's request to qq_{List}, from which the backend's workers pop the
// oldest. The list expires RequestTTL after the last push. The error is a kind of ErrFull if the
// list, or the sender's share of it, has no room.
func (r *Redis) PushRequest(ctx context.Context, request Request) error {
	n, o := request.List, r.opts
	refusedBy, err := r.evalInt(ctx, pushRequestScript,
		[]string{r.keys.requests(n), r.keys.requestLedger(n), r.keys.requestSums(n)},
		request.Data, senderDigest(request.Sender),
		o.RequestCap, o.RequestBytes, o.RequestShare, o.RequestShareBytes, millis(o.RequestTTL))
	if err == nil {
		err = requestRefusal(refusedBy)
	}
	if err != nil {
		return fmt.Errorf("push request to %d: %w", n, err)
	}
	return nil
}

// eval runs a script that returns an array.
func (r *Redis) eval(ctx context.Context, s *redispipe.Script, keys []string, args ...any) (*reply, error) {
	v, err := r.pipe.Eval(ctx, s, keys, args...)
	if err != nil {
		return nil, err
	}
	return array(v)
}

func array(v any) (*reply, error) {
	list, ok := v.([]any)
	if !ok {
		return nil, fmt.Errorf("unexpected reply of a script: %T is not an array", v)
	}
	return &reply{rest: list}, nil
}

// evalInt runs a script that returns an integer.
func (r *Redis) evalInt(ctx context.Context, s *redispipe.Script, keys []string, args ...any) (int64, error) {
	v, err := r.pipe.Eval(ctx, s, keys, args...)
	if err != nil {
		return 0, err
	}
	n, ok := v.(int64)
	if !ok {
		return 0, fmt.Errorf("unexpected reply of a script: %T is not an integer", v)
	}
	return n, nil
}

// OutcomeUnknown reports whether the call that failed with err may have run: Redis did not reply.
func OutcomeUnknown(err error) bool {
	if err == nil || errors.Is(err, ErrUnknownClient) || errors.Is(err, ErrNoReplicas) || errors.Is(err, ErrNewChannel) {
		return false
	}
	_, replied := errors.AsType[redis.Error](err)
	return !replied
}

// millis returns d in milliseconds, for a script. It is at least 1: a TTL of 0 would delete the
// key.
func millis(d time.Duration) int64 { return max(d.Milliseconds(), 1) }

// replaced is Options.Replaced as an argument of a script. It is evaluated when the command is
// written: the connection that the command waited for may be the first one to another Redis.
type replaced func() bool

// MarshalBinary implements [encoding.BinaryMarshaler], which go-redis calls when it writes.
func (f replaced) MarshalBinary() ([]byte, error) {
	if f() {
		return []byte("1"), nil
	}
	return []byte("0"), nil
}

// decimal formats an id for a script.
func decimal(id int64) string { return strconv.FormatInt(id, 10) }

// decode splits members into messages and malformed members.
func decode(members []string) (messages []Message, malformed []string) {
	if len(members) == 0 {
		return nil, nil
	}
	messages = make([]Message, 0, len(members))
	for _, member := range members {
		if m, err := DecodeMember(member); err == nil {
			messages = append(messages, m)
		} else {
			malformed = append(malformed, member)
		}
	}
	return messages, malformed
}
