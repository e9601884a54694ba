package queue

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/redispipe"
)

// fixture is a store as the conformance suite sees it.
type fixture struct {
	contract
	opts Options
	keys keys
	// hold makes servers the ones with subscribers of channel.
	hold func(t *testing.T, channel string, servers ...string)
	// lapse makes keys expire, whose TTL is given.
	lapse func(t *testing.T, ttl time.Duration, keys ...string)
	// own makes clients the user's, as the registry has them.
	own func(t *testing.T, user string, clients ...string)
	// work takes up to n requests from the head of a list, as a backend's worker does.
	work func(t *testing.T, list, n int) []string
	rdb  redis.UniversalClient // nil over memory
}

// conformance is the suite; its parts stand in the files named after their duty.
var conformance = []struct {
	name string
	test func(t *testing.T, open opener)
}{
	{"channel ids grow and chain", testChannelIDs},
	{"concurrent channel appends chain", testConcurrentChannelAppends},
	{"channel append reads the servers", testChannelServers},
	{"channel idempotency", testChannelIdempotency},
	{"many channel appends", testManyChannelAppends},
	{"many client appends", testManyClientAppends},
	{"channel capped by count", testChannelCountCap},
	{"channel capped by bytes", testChannelByteCap},
	{"channel with bounds of its own", testChannelOwnBounds},
	{"channel recovery", testChannelRecovery},
	{"channel pages by count", testChannelPagesByCount},
	{"channel pages by bytes", testChannelPagesByBytes},
	{"channel pages by bytes that are asked for", testChannelPageOfSoManyBytes},
	{"channel messages expire", testChannelExpiry},
	{"channel is new", testNewChannel},
	{"channel is forgotten", testForgottenChannel},
	{"channel is kept", testKeptChannel},
	{"trim by count", testTrimByCount},
	{"trim by age", testTrimByAge},
	{"bind", testBind},
	{"bind takes over", testBindTakesOver},
	{"bind of an attempt that was overtaken", testBindOvertaken},
	{"bind by secret", testBindBySecret},
	{"bind by name", testBindByName},
	{"refresh", testRefresh},
	{"refresh of many", testRefreshMany},
	{"refresh of a lost record", testRefreshOfLostRecord},
	{"unbind", testUnbind},
	{"release", testRelease},
	{"stale generation", testStaleGeneration},
	{"client append", testClientAppend},
	{"concurrent client appends chain", testConcurrentClientAppends},
	{"client append to a user", testClientAppendToUser},
	{"client idempotency", testClientIdempotency},
	{"client capped", testClientCap},
	{"many are bound", testManyBound},
	{"many channels are read", testManyReads},
	{"window", testWindow},
	{"window by bytes", testWindowByBytes},
	{"window ends", testWindowEnds},
	{"ack", testAck},
	{"many acks", testManyAcks},
	{"first acknowledgement withdraws", testFirst},
	{"first acknowledgement, with keys", testFirstByKey},
	{"first acknowledgement, repeated", testFirstRepeated},
	{"first acknowledgement, twice", testFirstTwice},
	{"first acknowledgement, beyond the cap", testFirstBeyondTheCap},
	{"first acknowledgement, of what was not received", testFirstUnreceived},
	{"first acknowledgement, at the end", testFirstAtTheEnd},
	{"first acknowledgement, of a former user", testFirstOfAFormerUser},
	{"first acknowledgement, at random", testFirstAtRandom},
	{"client list expires", testClientListExpiry},
	{"client list lives as long as asked for", testClientListTTL},
	{"confirm a channel's message", testConfirmChannel},
	{"confirm in an empty store", testConfirmChannelOfEmptyStore},
	{"confirm an expired channel's", testConfirmExpiredChannel},
	{"confirm a client's message", testConfirmClient},
	{"confirm a forgotten client's", testConfirmForgottenClient},
	{"confirm an expired list's", testConfirmExpiredClient},
	{"requests", testRequests},
	{"requests by bytes", testRequestBytes},
	{"requests of one sender", testRequestShare},
	{"requests that workers take", testRequestsTaken},
	{"requests expire", testRequestsExpire},
	{"durable", testDurable},
}

// opener makes an empty store for one test.
type opener func(t *testing.T, opts Options) fixture

func TestConformance(t *testing.T) {
	for _, store := range []struct {
		name string
		open opener
	}{
		{"memory", openMemory},
		{"redis", openRedis},
		{"cluster", openCluster},
	} {
		t.Run(store.name, func(t *testing.T) {
			for _, c := range conformance {
				t.Run(c.name, func(t *testing.T) { c.test(t, store.open) })
			}
		})
	}
}

func openRedis(t *testing.T, opts Options) fixture { return overRedis(server.Client(t), opts) }

func openCluster(t *testing.T, opts Options) fixture { return overRedis(cluster.Client(t), opts) }

var prefixes atomic.Int64

func overRedis(client redis.UniversalClient, opts Options) fixture {
	opts.Prefix = fmt.Sprintf("t%d:", prefixes.Add(1))
	r := NewRedis(redispipe.New(client, redispipe.Options{ReplicaTimeout: time.Millisecond}), opts)
	return fixture{
		contract: r, opts: r.opts, keys: r.keys, rdb: client,
		hold: func(t *testing.T, channel string, servers ...string) {
			t.Helper()
			ok(t, client.SAdd(t.Context(), r.keys.channelServers(channel), servers).Err())
		},
		own: func(t *testing.T, user string, clients ...string) {
			t.Helper()
			for _, c := range clients {
				ok(t, client.HSet(t.Context(), r.keys.userClients(user), c, "b1:1").Err())
			}
		},
		work: func(t *testing.T, list, n int) []string {
			t.Helper()
			taken, err := client.LPopCount(t.Context(), r.keys.requests(list), n).Result()
			if !errors.Is(err, redis.Nil) {
				ok(t, err)
			}
			return taken
		},
		lapse: func(t *testing.T, _ time.Duration, keys ...string) {
			t.Helper()
			for _, key := range keys { // one by one: a Cluster has them in several slots
				ok(t, client.Del(t.Context(), key).Err())
			}
		},
	}
}

func openMemory(_ *testing.T, opts Options) fixture {
	c := &clock{now: time.Date(2026, 11, 5, 12, 0, 0, 0, time.UTC)}
	owners := make(map[string][]string)
	opts.Now = c.Now
	m := NewMemory(opts, func(channel string) []string { return owners[channel] })
	return fixture{
		contract: m, opts: m.opts,
		hold: func(_ *testing.T, channel string, servers ...string) { owners[channel] = servers },
		own:  func(*testing.T, string, ...string) {}, // groups know their members
		work: func(_ *testing.T, list, n int) (taken []string) {
			l, found := m.requests.get(strconv.Itoa(list), c.Now().UnixMilli())
			if !found {
				return nil
			}
			n = min(n, len(l.waiting))
			for _, r := range l.waiting[:n] {
				taken = append(taken, string(r.Data))
			}
			l.waiting = l.waiting[n:]
			return taken
		},
		// All keys of the same TTL end together here; no test has others at that moment.
		lapse: func(_ *testing.T, ttl time.Duration, _ ...string) { c.advance(ttl) },
	}
}

// clock is a time that tests move.
type clock struct {
	mu  sync.Mutex // guards the field below
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
