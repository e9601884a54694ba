package queue

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/redispipe"
)

// fixture is a store under test, with functions that act for other parts of the system.
type fixture struct {
	contract
	opts Options
	keys keys
	// setServers sets the servers with subscribers of channel.
	setServers func(t *testing.T, channel string, servers ...string)
	// expire makes keys with this TTL expire.
	expire func(t *testing.T, ttl time.Duration, keys ...string)
	// addClients adds clients to the user, like the registry.
	addClients func(t *testing.T, user string, clients ...string)
	// popRequests takes up to n requests from the head of a list, like a backend's worker.
	popRequests func(t *testing.T, list, n int) []string
	rdb         redis.UniversalClient // nil for Memory
	// advance advances the clock of the store. Nothing expires by a TTL of Redis.
	advance func(t *testing.T, d time.Duration)
}

// conformance is the tests that run over every implementation. Each is in the file for its subject.
var conformance = []struct {
	name string
	test func(t *testing.T, open opener)
}{
	{"each channel append returns the id before it", testChannelIDs},
	{"concurrent channel appends", testConcurrentChannelAppends},
	{"channel append reads the servers", testChannelServers},
	{"channel idempotency", testChannelIdempotency},
	{"batch of channel appends", testBatchChannelAppends},
	{"batch of client appends", testBatchClientAppends},
	{"channel capped by count", testChannelCountCap},
	{"channel capped by bytes", testChannelByteCap},
	{"channel with bounds of its own", testChannelOwnBounds},
	{"channel recovery", testChannelRecovery},
	{"channel pages by count", testChannelPagesByCount},
	{"channel pages by bytes", testChannelPagesByBytes},
	{"channel pages by requested bytes", testChannelReadBytes},
	{"channel messages expire", testChannelExpiry},
	{"push with ExistingOnly", testNewChannel},
	{"channel is forgotten", testForgottenChannel},
	{"channel is kept", testKeptChannel},
	{"trim by count", testTrimByCount},
	{"trim by age", testTrimByAge},
	{"bind", testBind},
	{"bind takes over", testBindTakesOver},
	{"bind of a delayed attempt", testBindDelayed},
	{"bind that comes late", testBindLate},
	{"bind by secret", testBindBySecret},
	{"bind after another user", testBindAfterOtherUser},
	{"refresh", testRefresh},
	{"batch of refreshes", testBatchRefreshes},
	{"refresh of a lost record", testRefreshOfLostRecord},
	{"unbind", testUnbind},
	{"release", testRelease},
	{"stale generation", testStaleGeneration},
	{"client append", testClientAppend},
	{"concurrent client appends", testConcurrentClientAppends},
	{"client append to a user", testClientAppendToUser},
	{"client idempotency", testClientIdempotency},
	{"client capped", testClientCap},
	{"batch of binds", testBatchBinds},
	{"batch of reads", testBatchReads},
	{"window", testWindow},
	{"window by bytes", testWindowByBytes},
	{"window ends", testWindowEnds},
	{"read of a queue by another reader", testReadClient},
	{"ack", testAck},
	{"batch of acks", testBatchAcks},
	{"group: the first acknowledgement withdraws", testGroup},
	{"group: with keys", testGroupByKey},
	{"group: repeated push", testGroupRepeated},
	{"group: concurrent acknowledgements", testGroupConcurrentAcks},
	{"group: beyond the cap", testGroupBeyondCap},
	{"group: not received", testGroupNotReceived},
	{"group: at the end of the list", testGroupAtEnd},
	{"group: of a former user", testGroupOfFormerUser},
	{"group: at random", testGroupsAtRandom},
	{"client list expires", testClientListExpiry},
	{"client list with a TTL", testClientListTTL},
	{"confirm a channel's message", testConfirmChannel},
	{"confirm a message that an earlier failover lost", testConfirmEarlierLoss},
	{"confirm in an empty store", testConfirmChannelOfEmptyStore},
	{"confirm an expired channel's message", testConfirmExpiredChannel},
	{"confirm a client's message", testConfirmClient},
	{"confirm a forgotten client's message", testConfirmForgottenClient},
	{"confirm an expired list's message", testConfirmExpiredClient},
	{"requests", testRequests},
	{"requests by bytes", testRequestBytes},
	{"requests of one sender", testRequestShare},
	{"requests popped by workers", testRequestsPopped},
	{"requests expire", testRequestsExpire},
	{"durable", testDurable},
	{"authors", testAuthors},
	{"erase", testErase},
	{"erase: a dropped message", testEraseDropped},
	{"erase: what cannot be erased", testEraseNothing},
	{"erase: bounds of the channel", testEraseBounds},
	{"erase: at the same time", testEraseRace},
	{"state: operations", testStateOperations},
	{"state: conditions", testStateConditions},
	{"state: conditions on groups", testStateGroupConditions},
	{"state: claims, parents and groups", testStateRules},
	{"state: refusals with large fields", testStateLargeRefusals},
	{"state: counters", testStateCounter},
	{"state: holders of operations", testStateHolders},
	{"state: script of another package", testStateScript},
	{"state: leases", testStateLeases},
	{"state: owners", testStateOwners},
	{"state: an end without a state", testStateFence},
	{"state: several owners, end of a server", testStateServers},
	{"state: a field that the client owns already", testStateOwnAgain},
	{"state: kept and cleared", testStateKeep},
	{"state: kept by small changes", testStateKeptBySmallChanges},
	{"state: keys", testStateKeys},
	{"state: durable", testStateDurable},
	{"state: trimmed and confirmed channels", testStateTrim},
	{"state: many fields expire", testStateManyExpire},
	{"state: a full group", testStateFull},
	{"state: batches and channels", testStateBatch},
	{"reads count in the meter of a call", testMetered},
	{"a refusal reads what it shows", testLargeRefusalMetered},
	{"state: counts of groups", testStateCount},
	{"state: counts of a state that has ended", testStateCountKeep},
	{"state: fields without their ids", testStateBrief},
	{"messages that reach an id", testReach},
	{"state: cost of counts", testStateCountCost},
	{"newest ids", testHeads},
}

// opener returns an empty store for one test.
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
		setServers: func(t *testing.T, channel string, servers ...string) {
			t.Helper()
			ok(t, client.SAdd(t.Context(), r.keys.channelServers(channel), servers).Err())
		},
		addClients: func(t *testing.T, user string, clients ...string) {
			t.Helper()
			for _, c := range clients {
				ok(t, client.HSet(t.Context(), r.keys.userClients(user), c, "b1:1").Err())
			}
		},
		popRequests: func(t *testing.T, list, n int) []string {
			t.Helper()
			taken, err := client.LPopCount(t.Context(), r.keys.requests(list), n).Result()
			if !errors.Is(err, redis.Nil) {
				ok(t, err)
			}
			return taken
		},
		advance: func(t *testing.T, d time.Duration) {
			t.Helper()
			now := must(client.Time(t.Context()).Result())(t).UnixMilli()
			r.clock.frozen = true
			r.clock.update(max(now, r.clock.minimum()) + d.Milliseconds())
		},
		// expire deletes the keys. It waits for the next millisecond, since new ids follow the clock.
		expire: func(t *testing.T, _ time.Duration, keys ...string) {
			t.Helper()
			for _, key := range keys { // one by one: in a Cluster they are in several slots
				ok(t, client.Del(t.Context(), key).Err())
			}
			for start := time.Now().UnixMilli(); time.Now().UnixMilli() == start; {
				runtime.Gosched()
			}
		},
	}
}

func openMemory(_ *testing.T, opts Options) fixture {
	c := &clock{now: time.Date(2026, 11, 5, 12, 0, 0, 0, time.UTC)}
	servers := make(map[string][]string)
	opts.Now = c.Now
	m := NewMemory(opts, func(channel string) []string { return servers[channel] })
	return fixture{
		contract: m, opts: m.opts,
		setServers: func(_ *testing.T, channel string, names ...string) { servers[channel] = names },
		addClients: func(*testing.T, string, ...string) {}, // Memory does not need them: a group has a list of its copies
		popRequests: func(_ *testing.T, list, n int) (taken []string) {
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
		advance: func(_ *testing.T, d time.Duration) { c.advance(d) },
		// Memory expires everything with this TTL or less, not only the keys.
		expire: func(_ *testing.T, ttl time.Duration, _ ...string) { c.advance(ttl) },
	}
}

// clock is a clock that tests advance.
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
