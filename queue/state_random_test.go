package queue

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/longtest"
	"switchboard/internal/redispipe"
	"switchboard/internal/state"
)

var stateSeeds = flag.Uint64("stateseeds", longtest.Seeds(40, 200), "how many seeds TestRandomStates uses")

// TestRandomStates applies the same random updates and steps to Memory and to Redis, whose clocks
// show the same time, and compares all results.
func TestRandomStates(t *testing.T) {
	single := newStatePair(t, server.Client(t))
	for seed := range *stateSeeds {
		single.run(t, seed)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// TestRandomStatesOverCluster is TestRandomStates with a few seeds over a Redis Cluster.
func TestRandomStatesOverCluster(t *testing.T) {
	pair := newStatePair(t, cluster.Client(t))
	for seed := range uint64(10) {
		pair.run(t, seed)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// statePair is a Memory and a Redis whose clocks show the same time.
type statePair struct {
	memory *Memory
	redis  *Redis
	rdb    redis.UniversalClient
	clock  *clock
}

func newStatePair(t *testing.T, client redis.UniversalClient) *statePair {
	c := &clock{now: time.Now().Add(time.Hour).Truncate(time.Second)}
	// Nothing expires by a TTL, which would follow the clock of Redis.
	opts := Options{Now: c.Now, ChannelTTL: 1e5 * time.Hour, MetaTTL: 1e5 * time.Hour, KeyTTL: 1e5 * time.Hour}
	memory := NewMemory(opts, nil)
	opts.Prefix = fmt.Sprintf("t%d:", prefixes.Add(1))
	p := &statePair{memory: memory, redis: NewRedis(redispipe.New(client, redispipe.Options{}), opts), rdb: client, clock: c}
	p.redis.clock.frozen = true
	p.advance(0)
	return p
}

func (p *statePair) advance(d time.Duration) {
	p.clock.advance(d)
	p.redis.clock.update(p.clock.Now().UnixMilli())
}

// stateRun is one channel with random changes.
type stateRun struct {
	*testing.T
	*statePair
	*rand.Rand
	channel string
	ids     []int64 // of fields that were read
	read    []string
}

var (
	randomFields  = []string{"a", "b", "n", "Z", "member/1", "member/2", "member/10", "p/1", "p/2", "p/2/x", "p/2/y", "$max/member/", "$max/p/", "$$x"}
	randomClients = []string{`amy/"phone"`, `bob/\tab`, "cy/ü", ""}
	randomServers = []string{"s1", "s2"}
)

func (p *statePair) run(t *testing.T, seed uint64) {
	r := &stateRun{T: t, statePair: p, Rand: rand.New(rand.NewPCG(seed, 1)), channel: fmt.Sprint("c", seed)}
	for step := range 60 {
		r.step()
		r.comparePages()
		if t.Failed() {
			t.Logf("step %d", step)
			return
		}
	}
	r.compareLogs()
	checkStateRecords(t, r.rdb, r.redis.keys, r.channel)
}

func pick[T any](r *stateRun, list ...T) T { return list[r.IntN(len(list))] }

func (r *stateRun) step() {
	switch n := r.IntN(20); {
	case n < 5:
		r.advance(pick(r, time.Millisecond, 400*time.Millisecond, time.Second, time.Second, 3*time.Second, 20*time.Second, 2*time.Hour))
	case n < 9:
		step := r.randomStep()
		a, b := r.memory.StepStates(r.Context(), []StateStep{step})[0], r.redis.StepStates(r.Context(), []StateStep{step})[0]
		r.compare(fmt.Sprintf("%+v", step), a, b)
	case n < 10:
		push := ChannelPush{Channel: r.channel, Data: []byte("1"), Key: pick(r, "", "k0", "k1")}
		a, b := r.memory.AppendChannels(r.Context(), []ChannelPush{push})[0], r.redis.AppendChannels(r.Context(), []ChannelPush{push})[0]
		r.compare("a message", a, b)
	default:
		push := ChannelPush{Channel: r.channel, Update: r.randomUpdate(), Key: pick(r, "", "", "", "", "k0", "k1"), ExistingOnly: r.IntN(10) == 0}
		a, b := r.memory.AppendChannels(r.Context(), []ChannelPush{push})[0], r.redis.AppendChannels(r.Context(), []ChannelPush{push})[0]
		r.compare(fmt.Sprintf("%+v", *push.Update), a, b)
	}
}

func (r *stateRun) randomStep() StateStep {
	return StateStep{
		Channel: r.channel, Kind: StepKind(r.IntN(5)),
		Conn: state.Connection{Client: pick(r, randomClients[:3]...), Generation: int64(1 + r.IntN(4)), Server: pick(r, randomServers...)},
	}
}

func (r *stateRun) randomUpdate() *state.Update {
	client := pick(r, randomClients...)
	u := &state.Update{Client: client, Writer: pick(r, state.BackendHolder, "u:amy", "u:bob")}
	if client != "" {
		u.Generation, u.Server = int64(1+r.IntN(4)), pick(r, randomServers...)
	}
	if r.IntN(3) == 0 {
		u.Data = []byte(`{"text":"hello"}`)
	}
	names := r.Perm(len(randomFields))
	for _, i := range names[:pick(r, 0, 1, 1, 1, 2, 2, 3, 5)] {
		u.Ops = append(u.Ops, r.randomOp(randomFields[i], client))
	}
	if r.IntN(4) == 0 {
		r.takeNumbers(u)
	}
	r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, i := range names[:pick(r, 0, 0, 0, 0, 1, 2)] {
		c := state.Condition{Field: randomFields[i], Kind: state.ConditionKind(r.IntN(3)), ID: 5}
		if group := state.Group(c.Field); group != "" && r.IntN(4) == 0 {
			u.If = append(u.If, state.Condition{Field: group, Kind: state.AtMost, Max: r.IntN(3)})
			continue
		}
		if at := r.IntN(len(r.ids) + 1); at < len(r.ids) {
			c.Field, c.ID = r.read[at], r.ids[at]
		}
		if len(u.If) == 0 || u.If[0].Field != c.Field {
			u.If = append(u.If, c)
		}
	}
	if r.IntN(4) == 0 {
		u.ByField = pick(r, randomFields...)
	}
	if r.IntN(4) == 0 {
		u.Exclude = pick(r, "amy/tab", `b"o\b`)
	}
	if r.IntN(2) == 0 {
		u.Limits = state.Limits{Fields: pick(r, 0, 3, 6), Bytes: pick(r, 0, 40, 80), Owned: pick(r, 0, 1, 2), Keep: pick(r, 0, 2*time.Second, time.Minute)}
	}
	if r.IntN(4) == 0 { // some leases have ended then
		u.From = r.clock.Now().UnixMilli() - pick[int64](r, 0, 1, 1000, 7000)
	}
	return u
}

// takeNumbers adds a counter, and operations on fields with its numbers.
func (r *stateRun) takeNumbers(u *state.Update) {
	u.Counter, u.Take = pick(r, "$$next", "$$next", "n", "a"), pick(r, 0, 1, 2, 3, state.MaxTake+1)
	u.Ops = slices.DeleteFunc(u.Ops, func(op state.Op) bool { return op.Field == u.Counter })
	for _, name := range []string{"new/{n}", "new/{n2}", "q/{n3}", "q/{n64}"}[:pick(r, 1, 1, 1, 2, 4)] {
		op := r.randomOp(name, u.Client)
		if op.Numbered = r.IntN(2) == 0; op.Kind == state.Set && r.IntN(2) == 0 {
			op.Value = []byte(pick(r, `"{n}"`, `{"a":["{n}","{n2}","{n1}","{n{n3}}"]}`))
		}
		u.Ops = append(u.Ops, op)
	}
	for i := range u.Ops {
		if r.IntN(4) == 0 {
			u.Ops[i].Parent = pick(r, "new/{n}", "new/{n2}")
		}
	}
}

func (r *stateRun) randomOp(field, client string) state.Op {
	op := state.Op{Field: field, Kind: pick(r, state.Set, state.Set, state.Set, state.Delete, state.Add, state.Add, state.Touch)}
	switch op.Kind {
	case state.Set:
		op.Value = []byte(pick(r, "1", "2", "-7", "9007199254740990", `"é \" "`, `{"a":[1,2]}`, "1.5", "-0"))
	case state.Add:
		op.By, op.Min, op.Max = pick[int64](r, 1, -1, 3, state.MaxNumber-1), pick[int64](r, -1<<63, 0, -3), pick[int64](r, 1<<63-1, 5)
	}
	op.TTL = pick(r, 0, 0, 0, time.Microsecond, 300*time.Millisecond, time.Second, 5*time.Second)
	op.Grace = pick(r, 0, time.Second, 10*time.Second, state.GraceNever)
	if op.Own = pick(r, state.KeepOwners, state.KeepOwners, state.Own, state.Own, state.Disown); client == "" && op.Own == state.Own {
		op.Own = state.KeepOwners
	}
	op.Claim = r.IntN(8) == 0
	op.Holder = pick(r, "", "", "", "u:amy", "u:bob")
	if r.IntN(4) == 0 {
		op.Parent = pick(r, randomFields[:6]...)
	}
	if state.Group(field) == "p/" && r.IntN(2) == 0 {
		op.Parent = pick(r, "a", "a", "b")
	}
	op.HeldParent = r.IntN(6) == 0 || op.Kind == state.Delete && r.IntN(2) == 0
	op.GroupMax = pick(r, 0, 0, 1, 2)
	if strings.HasPrefix(field, "p/2/") && r.IntN(2) == 0 {
		op.Group = "p/2/"
	}
	return op
}

// compare compares the results of one change.
func (r *stateRun) compare(what string, memory, redis Outcome[Appended]) {
	r.Helper()
	a, b := memory.Value, redis.Value
	if a.ID != b.ID || a.Prev != b.Prev || a.Duplicate != b.Duplicate || a.Due != b.Due || a.Clock != b.Clock || !reflect.DeepEqual(a.Numbers, b.Numbers) {
		r.Errorf("%s:\nmemory %+v\nredis  %+v", what, a, b)
	}
	if got, want := normal(r, b.Data), normal(r, a.Data); got != want {
		r.Errorf("%s:\nmemory %s\nredis  %s", what, want, got)
	}
	refusal, refused := errors.AsType[*state.Refusal](memory.Err)
	other, _ := errors.AsType[*state.Refusal](redis.Err)
	switch {
	case fmt.Sprint(memory.Err) != fmt.Sprint(redis.Err), errors.Is(memory.Err, ErrStale) != errors.Is(redis.Err, ErrStale),
		errors.Is(memory.Err, ErrNewChannel) != errors.Is(redis.Err, ErrNewChannel):
		r.Errorf("%s:\nmemory %v\nredis  %v", what, memory.Err, redis.Err)
	case refused && !reflect.DeepEqual(refusal, other):
		r.Errorf("%s: %v\nmemory %+v %v\nredis  %+v %v", what, memory.Err, refusal, refusal.Fields, other, other.Fields)
	}
}

// normal returns the data of a message in a form that does not depend on the order of members.
func normal(t testing.TB, data []byte) string {
	if !state.IsEntry(data) {
		return string(data)
	}
	t.Helper()
	return string(must(state.DecodeEntry(data))(t).Encode())
}

func (r *stateRun) comparePages() {
	r.Helper()
	reads := []StateRead{
		{Channel: r.channel},
		{Channel: r.channel, Prefix: pick(r, "", "m", "member/", "$", "zz"), Cursor: pick(r, "", "a", "member/1", "p/1"), Limit: r.IntN(4), Bytes: pick(r, 0, 1, 20)},
		{Channel: r.channel, Fields: []string{"p/1", "a", "absent"}},
		{Channel: r.channel, Fields: []string{"p/1"}, Count: []state.FieldGroup{
			{Prefix: "member/"}, {Prefix: "m", Parents: true}, {Prefix: pick(r, "a", "$", "p/"), Parents: r.IntN(2) == 0},
		}},
	}
	a, b := r.memory.ReadStates(r.Context(), reads), r.redis.ReadStates(r.Context(), reads)
	for i := range reads {
		if !reflect.DeepEqual(a[i], b[i]) {
			r.Errorf("%+v:\nmemory %s\nredis  %s", reads[i], show(a[i]), show(b[i]))
		}
	}
	r.ids, r.read = nil, nil
	for _, f := range a[0].Value.Fields {
		r.ids, r.read = append(r.ids, f.ID), append(r.read, f.Name)
	}
}

func show(o Outcome[StatePage]) string {
	text := fmt.Sprintf("id %d clock %d next %q due %d err %v", o.Value.ID, o.Value.Clock, o.Value.Next, o.Value.Due, o.Err)
	for _, f := range o.Value.Fields {
		text += fmt.Sprintf("\n\t%s %q", f.Name, f.AppendRecord(nil))
	}
	return text
}

func (r *stateRun) compareLogs() {
	r.Helper()
	a, b := must(r.memory.ReadChannel(r.Context(), r.channel, 0, 1000))(r), must(r.redis.ReadChannel(r.Context(), r.channel, 0, 1000))(r)
	equal(r, "messages", len(b.Messages), len(a.Messages))
	for i := range min(len(a.Messages), len(b.Messages)) {
		equal(r, "id", b.Messages[i].ID, a.Messages[i].ID)
		equal(r, "message", normal(r, b.Messages[i].Data), normal(r, a.Messages[i].Data))
	}
}

// checkStateRecords checks that the records of a channel's state agree with each other.
func checkStateRecords(t testing.TB, rdb redis.UniversalClient, k keys, channel string) {
	t.Helper()
	records := must(rdb.HGetAll(t.Context(), k.state(channel)).Result())(t)
	names := must(rdb.ZRange(t.Context(), k.stateNames(channel), 0, -1).Result())(t)
	ends, parts, owned := map[string]float64{}, map[string]float64{}, map[string]bool{}
	size, due := 0, int64(0)
	for name, record := range records {
		f := must(state.ParseRecord(record))(t)
		size += len(name) + len(f.Value)
		if until := f.Until(); until > 0 {
			ends[name] = float64(until)
			if due == 0 || until < due {
				due = until
			}
		}
		if f.Parent != "" {
			parts[f.Parent+" "+name] = 0
		}
		for _, owner := range f.Owners {
			owned[owner+" "+name] = true
		}
	}
	q := &Redis{pipe: redispipe.New(rdb, redispipe.Options{}), keys: k}
	equal(t, "differences", fmt.Sprint(must(q.CheckState(t.Context(), channel))(t)), "[]")
	equal(t, "names", len(names), len(records))
	for _, name := range names {
		if _, found := records[name]; !found {
			t.Errorf("%s is in st_n_ and not in st_", name)
		}
	}
	for key, want := range map[string]map[string]float64{k.stateEnds(channel): ends, k.stateParts(channel): parts} {
		got := map[string]float64{}
		for _, z := range must(rdb.ZRangeWithScores(t.Context(), key, 0, -1).Result())(t) {
			got[z.Member.(string)] = z.Score
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s has %v, want %v", key, got, want)
		}
	}
	recorded := map[string]bool{}
	clients := must(rdb.HGetAll(t.Context(), k.stateOwners(channel)).Result())(t)
	for client, record := range clients {
		for _, name := range ownedFields(record) {
			recorded[client+" "+name] = true
		}
	}
	if !reflect.DeepEqual(recorded, owned) {
		t.Errorf("st_o_ has %v, want %v", recorded, owned)
	}
	checkStatePosition(t, rdb, k, channel, len(records)+len(clients) > 0, size, due)
}

// checkStatePosition checks the fields of mq_m that describe a state.
func checkStatePosition(t testing.TB, rdb redis.UniversalClient, k keys, channel string, exists bool, size int, due int64) {
	t.Helper()
	meta := must(rdb.HMGet(t.Context(), k.channelMeta(channel), "st_keep", "st_bytes", "st_due").Result())(t)
	ttl := must(rdb.PTTL(t.Context(), k.channelMeta(channel)).Result())(t)
	if !exists {
		equal(t, "mq_m without a state", fmt.Sprint(meta), "[<nil> <nil> <nil>]")
		if ttl == -1 {
			t.Error("mq_m has no TTL, although there is no state")
		}
		return
	}
	equal(t, "st_bytes and st_due", fmt.Sprint(meta[1:]), fmt.Sprint([]any{size, due}))
	equal(t, "TTL of mq_m", ttl, -1)
}
