package queue

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/keytable"
	"switchboard/internal/redispipe"
	"switchboard/internal/redistest"
	"switchboard/internal/state"
)

// The tests of states in this file are for Redis only.

// TestRedisStateOfWrongType checks that an update which finds a record of a wrong type changes
// nothing.
func TestRedisStateOfWrongType(t *testing.T) {
	client := server.Client(t)
	f := overRedis(client, Options{})
	k := f.keys
	all := []state.Op{own(leased(set("a", "1"), time.Hour), 0), set("b", "1"), part(set("c", "1"), "b")}
	for _, key := range []string{k.state(room), k.stateNames(room), k.stateEnds(room), k.stateOwners(room), k.stateParts(room), k.channel(room)} {
		ok(t, client.Del(t.Context(), key).Err())
		must(f.updateBy(t, amy, all...))(t)
		for name := range map[string]bool{"a": true, "b": true, "c": true} {
			must(f.update(t, state.Op{Field: name, Kind: state.Delete}))(t)
		}
		must(f.updateBy(t, amy, all...))(t)
		ok(t, client.Del(t.Context(), key).Err())
		ok(t, client.Set(t.Context(), key, "1", 0).Err())
		before := dump(t, client, k)
		_, err := f.updateBy(t, amy, state.Op{Field: "a", Kind: state.Delete}, state.Op{Field: "b", Kind: state.Delete},
			own(leased(set("d", "1"), time.Minute), 0), set("e", "1"), part(set("g", "1"), "e"))
		if err == nil {
			t.Errorf("%s of a wrong type: no error", key)
		}
		for name, text := range dump(t, client, k) {
			equal(t, key+" of a wrong type: "+name, text, before[name])
		}
		for _, other := range keysOf(k) {
			ok(t, client.Del(t.Context(), other).Err())
		}
	}
}

func keysOf(k keys) []string {
	return []string{k.channel(room), k.channelMeta(room), k.state(room), k.stateNames(room), k.stateEnds(room), k.stateOwners(room), k.stateParts(room)}
}

// dump returns the serialized records of a channel.
func dump(t *testing.T, client *redis.Client, k keys) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, key := range keysOf(k) {
		texts[key] = client.Dump(t.Context(), key).Val()
	}
	return texts
}

// TestRedisStateWithoutPosition checks that the records of a state are removed if mq_m is lost.
func TestRedisStateWithoutPosition(t *testing.T) {
	client := server.Client(t)
	f := overRedis(client, Options{})
	for name, end := range map[string]func(){
		"update": func() { must(f.update(t, set("b", "2")))(t) },
		"sweep":  func() { must(f.stepState(t, Sweep, state.Connection{}))(t) },
	} {
		must(f.updateBy(t, amy, own(leased(set("a", "1"), time.Hour), 0)))(t)
		ok(t, client.Del(t.Context(), f.keys.channelMeta(room)).Err())
		o := f.ReadStates(t.Context(), []StateRead{{Channel: room}})[0]
		equal(t, name+": fields without a position", len(o.Value.Fields), 0)
		end()
		checkStateRecords(t, client, f.keys, room)
	}
}

// TestRedisStatePosition checks that an append which renews the TTLs does not give one to the
// position of a channel with a state.
func TestRedisStatePosition(t *testing.T) {
	client := server.Client(t)
	f := overRedis(client, Options{})
	must(f.update(t, set("a", "1")))(t)
	push(t, f, room, 1)
	ok(t, client.HSet(t.Context(), f.keys.channelMeta(room), "until", 0).Err())
	push(t, f, room, 1)
	checkStateRecords(t, client, f.keys, room)
	must(f.update(t, state.Op{Field: "a", Kind: state.Delete}))(t)
	checkStateRecords(t, client, f.keys, room)
	if ttl := must(client.PTTL(t.Context(), f.keys.channelMeta(room)).Result())(t); ttl < 7*time.Hour {
		t.Errorf("mq_m lives %v after the state", ttl)
	}
}

// TestRedisStateKeys checks the keys of a state, and that the last field and owner take them away.
func TestRedisStateKeys(t *testing.T) {
	client := redistest.Start(t).Client(t)
	f := fixture{contract: NewRedis(redispipe.New(client, redispipe.Options{}), Options{})}
	must(f.updateBy(t, amy, own(leased(set("a", "1"), time.Hour), 0), part(set("b", "1"), "a")))(t)
	count := must(keytable.Check(t.Context(), client))(t)
	for _, pattern := range []string{`^mq_ch_\{.+\}$`, `^mq_m_\{.+\}$`, `^st_\{.+\}$`, `^st_n_\{.+\}$`, `^st_x_\{.+\}$`, `^st_o_\{.+\}$`, `^st_p_\{.+\}$`} {
		equal(t, pattern, count[pattern], 1)
	}
	disown := set("b", "1")
	disown.Own = state.Disown
	must(f.update(t, state.Op{Field: "a", Kind: state.Delete}))(t)
	equal(t, "keys after the last field", fmt.Sprint(must(client.Keys(t.Context(), "st_*").Result())(t)), "[st_o_{room:7}]")
	must(f.stepState(t, OwnerUnsubscribed, amy))(t)
	f.contract.(*Redis).clock.update(time.Now().Add(2 * time.Hour).UnixMilli())
	must(f.stepState(t, Sweep, amy))(t)
	equal(t, "keys after the last owner", fmt.Sprint(must(client.Keys(t.Context(), "st_*").Result())(t)), "[]")
	must(keytable.Check(t.Context(), client))(t)
}

// TestRedisStateDuplicateWritesAgain checks that a durable duplicate writes the key again,
// unchanged.
func TestRedisStateDuplicateWritesAgain(t *testing.T) {
	client := redistest.Start(t).Client(t)
	q := NewRedis(redispipe.New(client, redispipe.Options{ReplicaTimeout: time.Millisecond}), Options{})
	push := ChannelPush{Channel: room, Key: "k", Update: &state.Update{Ops: []state.Op{add("n", 1)}}}
	must(q.AppendChannel(t.Context(), push))(t)
	key := q.keys.channelKey(room, "k")
	before := must(client.Get(t.Context(), key).Result())(t)
	changes := func() (n int) {
		t.Helper()
		info := must(client.InfoMap(t.Context(), "persistence").Result())(t)
		must(fmt.Sscan(info["Persistence"]["rdb_changes_since_last_save"], &n))(t)
		return n
	}
	first := changes()
	must(q.AppendChannel(t.Context(), push))(t)
	equal(t, "changes by a duplicate", changes()-first, 0)
	push.Durable = true
	_, err := q.AppendChannel(t.Context(), push)
	fails(t, "durable", err, ErrNotReplicated)
	equal(t, "changes by a durable duplicate", changes()-first, 1)
	equal(t, "key", must(client.Get(t.Context(), key).Result())(t), before)
}

// TestRedisStateExpiryInBatches checks that a thousand fields which expire at once take a few
// commands, not some for each field. It logs the time that Redis took.
func TestRedisStateExpiryInBatches(t *testing.T) {
	client := redistest.Start(t).Client(t)
	f := fixture{contract: NewRedis(redispipe.New(client, redispipe.Options{}), Options{})}
	var ops []state.Op
	for i := range 1000 {
		ops = append(ops, leased(set(fmt.Sprintf("seat/%04d", i), `{"n":1}`), time.Minute))
	}
	must(f.update(t, ops...))(t)
	f.contract.(*Redis).clock.update(time.Now().Add(time.Hour).UnixMilli())
	must(f.stepState(t, Sweep, state.Connection{Client: "x"}))(t) // loads the script
	must(f.update(t, ops...))(t)
	f.contract.(*Redis).clock.update(time.Now().Add(2 * time.Hour).UnixMilli())
	ok(t, client.ConfigResetStat(t.Context()).Err())
	must(f.stepState(t, Sweep, state.Connection{}))(t)
	commands := commandCalls(t, client)
	t.Logf("1000 fields expired in %.1f ms", scriptMicros(t, client)/1000)
	if commands > 40 {
		t.Errorf("%d commands", commands)
	}
}
