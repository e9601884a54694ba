package queue

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/redispipe"
	"switchboard/internal/state"
)

//go:embed lua/*.lua
var luaFiles embed.FS

var (
	appendChannelScript  = redispipe.MustScript(luaFiles, "append_channel", "append")
	eraseMessageScript   = redispipe.MustScript(luaFiles, "erase_message", "append")
	readChannelScript    = redispipe.MustScript(luaFiles, "read_channel")
	trimChannelScript    = redispipe.MustScript(luaFiles, "trim_channel")
	bindScript           = redispipe.MustScript(luaFiles, "bind", "heads")
	refreshScript        = redispipe.MustScript(luaFiles, "refresh")
	unbindScript         = redispipe.MustScript(luaFiles, "unbind")
	releaseScript        = redispipe.MustScript(luaFiles, "release")
	clientScript         = redispipe.MustScript(luaFiles, "client")
	appendClientScript   = redispipe.MustScript(luaFiles, "append_client")
	windowScript         = redispipe.MustScript(luaFiles, "window")
	ackScript            = redispipe.MustScript(luaFiles, "ack")
	updateStateScript    = redispipe.MustScript(named{luaFiles}, "update_state", stateScriptPieces...)
	stepStateScript      = redispipe.MustScript(luaFiles, "step_state", "append", "state_fields", "state_owners", "state_rare", "state_write")
	checkStateScript     = redispipe.MustScript(luaFiles, "check_state")
	readStateScript      = redispipe.MustScript(luaFiles, "read_state", "last_id")
	countStateScript     = redispipe.MustScript(luaFiles, "count_state", "last_id")
	channelHeadsScript   = redispipe.MustScript(luaFiles, "channel_heads", "heads")
	clientHeadsScript    = redispipe.MustScript(luaFiles, "client_heads", "heads")
	confirmChannelScript = redispipe.MustScript(luaFiles, "confirm_channel")
	confirmClientScript  = redispipe.MustScript(luaFiles, "confirm_client")
	deleteGroupsScript   = redispipe.MustScript(luaFiles, "delete_groups")
	withdrawScript       = redispipe.MustScript(luaFiles, "withdraw")
	pushRequestScript    = redispipe.MustScript(luaFiles, "push_request")
)

// Redis is the queue that several servers share. A script checks conditions and writes in one step,
// so a condition still holds when the script writes. The methods are safe for concurrent use, and
// concurrent calls share round trips.
type Redis struct {
	pipe *redispipe.Pipe
	opts Options
	keys keys

	appendClient  clientScripts  // for pushes without AckGroup
	appendGrouped clientScripts  // for pushes with AckGroup
	appendChannel channelScripts // for pushes without Cap and TTL
	appendOther   sync.Map       // channelScripts by scriptKey, for pushes with Cap, TTL or Script

	bind, refresh, read, ack, withdraw *redispipe.BatchScript
	stepState, readState, countState   *redispipe.BatchScript
	channelHeads, clientHeads          *redispipe.BatchScript

	clock storeClock
}

// NewRedis returns the queues over pipe. opts must be valid.
func NewRedis(pipe *redispipe.Pipe, opts Options) *Redis {
	opts = opts.withDefaults()
	r := &Redis{pipe: pipe, opts: opts, keys: keys{opts.Prefix}}
	r.bind = &redispipe.BatchScript{Script: bindScript, Shared: []any{ttlArg(opts.RecordTTL), &r.clock, decimal(MaxBindDelay.Milliseconds())}}
	r.refresh = &redispipe.BatchScript{Script: refreshScript, Shared: []any{ttlArg(opts.RecordTTL), &r.clock}}
	r.read = &redispipe.BatchScript{Script: readChannelScript, Shared: []any{strconv.Itoa(MaxPageBytes)}}
	r.ack = &redispipe.BatchScript{Script: ackScript}
	r.withdraw = &redispipe.BatchScript{Script: withdrawScript}
	r.channelHeads = &redispipe.BatchScript{Script: channelHeadsScript}
	r.clientHeads = &redispipe.BatchScript{Script: clientHeadsScript}
	r.appendChannel = r.newChannelScripts(scriptKey{bounds{opts.ChannelCap, opts.ChannelTTL}, updateStateScript})
	r.stepState = r.channelScript(stepStateScript, bounds{opts.ChannelCap, opts.ChannelTTL}, "0")
	r.readState = &redispipe.BatchScript{Script: readStateScript, Shared: []any{strconv.Itoa(MaxPageBytes), &r.clock}}
	r.countState = &redispipe.BatchScript{Script: countStateScript, Shared: []any{&r.clock}}
	r.appendClient, r.appendGrouped = r.newClientScripts("3"), r.newClientScripts("4")
	return r
}

// clientScripts is append_client for pushes that are durable or not.
type clientScripts struct{ plain, durable *redispipe.BatchScript }

// newClientScripts returns the scripts for pushes with args arguments each, see append_client.lua.
func (r *Redis) newClientScripts(args string) clientScripts {
	o := r.opts
	script := func(durable bool, durableArg string) *redispipe.BatchScript {
		return &redispipe.BatchScript{Script: appendClientScript, Durable: durable, Shared: []any{
			strconv.Itoa(o.ClientCap), ttlArg(o.ClientTTL), ttlArg(o.RecordTTL), ttlArg(o.KeyTTL),
			&r.clock, durableArg, replaced(o.Replaced), args,
		}}
	}
	return clientScripts{plain: script(false, "0"), durable: script(true, "1")}
}

func (s clientScripts) of(push ClientPush) *redispipe.BatchScript {
	if push.Durable {
		return s.durable
	}
	return s.plain
}

// bounds is the cap and TTL of a channel.
type bounds struct {
	cap int
	ttl time.Duration
}

// scriptKey is the bounds of a channel, and update_state or the script of a StateScript.
type scriptKey struct {
	bounds
	update *redispipe.Script
}

// channelScripts is append_channel, update_state and erase_message for one scriptKey.
type channelScripts struct{ message, update, erase pushScripts }

// pushScripts is a script for pushes that differ in ARGV[7] of append.lua.
type pushScripts struct{ plain, durable, existingOnly, durableExisting *redispipe.BatchScript }

func (r *Redis) newChannelScripts(key scriptKey) channelScripts {
	scripts := func(s *redispipe.Script) pushScripts {
		b := key.bounds
		p := pushScripts{
			r.channelScript(s, b, "0"), r.channelScript(s, b, "1"), r.channelScript(s, b, "2"), r.channelScript(s, b, "3"),
		}
		p.durable.Durable, p.durableExisting.Durable = true, true
		return p
	}
	return channelScripts{message: scripts(appendChannelScript), update: scripts(key.update), erase: scripts(eraseMessageScript)}
}

// channelScript returns a script with the arguments of append.lua.
func (r *Redis) channelScript(s *redispipe.Script, b bounds, arg7 string) *redispipe.BatchScript {
	return &redispipe.BatchScript{Script: s, Shared: []any{
		strconv.Itoa(b.cap), decimal(r.opts.ChannelMaxBytes), ttlArg(b.ttl), ttlArg(b.ttl + r.opts.MetaTTL),
		ttlArg(r.opts.KeyTTL), &r.clock, arg7,
	}}
}

func (s pushScripts) of(push ChannelPush) *redispipe.BatchScript {
	switch {
	case push.Durable && push.ExistingOnly:
		return s.durableExisting
	case push.Durable:
		return s.durable
	case push.ExistingOnly:
		return s.existingOnly
	}
	return s.plain
}

// scriptsFor returns the scripts for the bounds and the Script of a push, and keeps them. Only
// namespaces set bounds, so there are few.
func (r *Redis) scriptsFor(push ChannelPush) channelScripts {
	if push.Cap == 0 && push.TTL == 0 && push.Script == nil {
		return r.appendChannel
	}
	key := scriptKey{bounds{
		min(cmp.Or(push.Cap, r.opts.ChannelCap), r.opts.ChannelCap),
		min(cmp.Or(push.TTL, r.opts.ChannelTTL), max(r.opts.ChannelTTL, MaxChannelTTL)),
	}, updateStateScript}
	if push.Script != nil {
		key.update = push.Script.Script.script
	}
	scripts, found := r.appendOther.Load(key)
	if !found {
		scripts, _ = r.appendOther.LoadOrStore(key, r.newChannelScripts(key))
	}
	return scripts.(channelScripts)
}

// PushRequest appends a client's request to qq_{List}, from which the backend's workers pop the
// oldest. The list expires RequestTTL after the last push. The error is a kind of ErrFull if the
// list, or the sender's share of it, has no room.
func (r *Redis) PushRequest(ctx context.Context, request Request) error {
	n, o := request.List, r.opts
	refusedBy, err := r.pipe.EvalInt(ctx, pushRequestScript,
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

// OutcomeUnknown reports whether the call that failed with err may have run: Redis did not reply.
func OutcomeUnknown(err error) bool {
	if err == nil || errors.Is(err, ErrUnknownClient) || errors.Is(err, ErrNoReplicas) || errors.Is(err, ErrNewChannel) {
		return false
	}
	if _, refused := errors.AsType[*state.Refusal](err); refused {
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

// ttlArg formats a TTL for a script, in milliseconds.
func ttlArg(d time.Duration) string { return decimal(millis(d)) }

// decimal formats an integer for a script.
func decimal(n int64) string { return strconv.FormatInt(n, 10) }

// decode splits members into messages and malformed members. one parses a member.
func decode(members []string, one func(string) (Message, error)) (messages []Message, malformed []string) {
	if len(members) == 0 {
		return nil, nil
	}
	messages = make([]Message, 0, len(members))
	for _, member := range members {
		if m, err := one(member); err == nil {
			messages = append(messages, m)
		} else {
			malformed = append(malformed, member)
		}
	}
	return messages, malformed
}
