package state

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"switchboard/internal/wire"
)

// world is one run of the model: a state, its oracle, and the fold of its log, which must agree
// after every step.
type world struct {
	*rand.Rand
	state  *State
	oracle *oracle
	fold   *Map
	table  Table // follows fold
	log    []Logged
	now    int64
	id     int64

	limits  Limits
	lease   time.Duration // the longest lease
	writers []*writer
	ending  map[string]string // the fields that are due at the step, with the reasons
	wrong   string            // what does not agree
	trace   []string
}

// writer is a client with a connection, or the backend.
type writer struct {
	client, holder string
	generation     int64
	server         string
	stale          []Connection // earlier connections, from which calls may still arrive
}

var servers = []string{"s1", "s2", "s3"}

// fieldNames are the fields of a world. Groups have limits, see groupMaxes.
var fieldNames = []string{
	"turn", "n", "total", "seat/1", "seat/2", "seat/3", "seat/4", "member/1", "member/2", "member/3",
	"p/1/x", "p/2/x", "p/2/y", "$max/seat/", "$max/member/", "$$user/amy",
}

// familyNames are fields that have parts, and their parts. Updates often change several of them.
var familyNames = []string{"member/1", "member/2", "p/1/x", "p/2/x", "p/2/y"}

var groupMaxes = map[string]int{"seat/": 3, "member/": 2}

func newWorld(seed uint64) *world {
	w := &world{Rand: rand.New(rand.NewPCG(seed, 0)), state: New(), oracle: newOracle(), fold: NewMap(0), now: 1_000_000}
	w.limits = Limits{Fields: w.choose(0, 8, 12), Bytes: w.choose(0, 100, 140), Owned: w.choose(0, 2, 4)}
	w.limits.Keep = time.Duration(w.choose(0, 0, 60, 500)) * time.Millisecond
	w.lease = time.Duration(w.choose(4, 30, 400)) * time.Millisecond
	for _, client := range []string{"amy/phone", "amy/tab", "bob/phone", "bob/tab", "cat/tab", "guest"} {
		holder := ClientHolder(client)
		if user := wire.UserOf(client); user != "" {
			holder = UserHolder(user)
		}
		w.writers = append(w.writers, &writer{client: client, holder: holder, generation: 1, server: pick(w, servers)})
	}
	w.writers = append(w.writers, &writer{holder: BackendHolder}, &writer{holder: BackendHolder})
	return w
}

func pick[T any](w *world, of []T) T { return of[w.IntN(len(of))] }

func (w *world) choose(of ...int) int { return pick(w, of) }

// chance reports true in one of n cases.
func (w *world) chance(n int) bool { return w.IntN(n) == 0 }

func (w *world) next() int64 {
	w.id += 1 + int64(w.IntN(3))
	return w.id
}

// step advances the clock, does one random call, and compares.
func (w *world) step() {
	w.advance()
	w.ending = w.oracle.reasons(w.now)
	x := w.writers[w.IntN(len(w.writers))]
	conn := Connection{x.client, x.generation, x.server}
	switch {
	case len(x.stale) > 0 && w.chance(12):
		conn = pick(w, x.stale)
	case w.oracle.isFenced(conn.Client, conn.Generation, conn.Server) && w.chance(2):
		w.back(x, true)
		w.check()
		return
	}
	switch n := w.IntN(100); {
	case n < 72 || x.client == "" && n < 94:
		w.update(x, conn)
	case n < 78:
		w.call("Sweep", w.state.Sweep(w.now, w.next))
		w.oracle.sweep(w.now)
	case n < 80:
		server := pick(w, servers)
		w.call("EndServer "+server, w.state.EndServer(w.now, w.next, server))
		w.oracle.endServer(w.now, server)
		w.moveClients(server)
	case x.client == "":
		return
	case n < 88:
		w.call(fmt.Sprint("End ", conn), w.state.End(w.now, w.next, conn))
		w.oracle.end(w.now, conn)
	case n < 97:
		w.back(x, w.chance(2))
	default:
		w.call(fmt.Sprint("Disown ", conn), w.state.Disown(w.now, w.next, conn))
		w.oracle.disown(w.now, conn)
	}
	w.check()
}

// back tells the state that a client is connected, maybe by a new connection.
func (w *world) back(x *writer, reconnect bool) {
	if reconnect {
		x.stale = append(x.stale, Connection{x.client, x.generation, x.server})
		x.generation++
		x.server = pick(w, servers)
	}
	conn := Connection{x.client, x.generation, x.server}
	r, ok := w.state.Back(w.now, w.next, conn)
	w.call(fmt.Sprint("Back ", conn), r)
	if want := w.oracle.back(w.now, conn); ok != want {
		w.fail("Back returned %v, want %v", ok, want)
	}
}

func (w *world) advance() {
	w.now += int64(w.choose(0, 0, 1, 1, 2, 5, 20))
	if w.chance(200) {
		w.now += FenceMS + 1
	}
	if w.state.keepUntil == 0 || w.now < w.state.keepUntil {
		w.compareFold("before the step")
	}
}

// moveClients gives some of the connections of a server that ended to another one.
func (w *world) moveClients(server string) {
	for _, x := range w.writers {
		if x.server == server && w.chance(2) {
			x.stale = append(x.stale, Connection{x.client, x.generation, server})
			x.server = pick(w, servers)
		}
	}
}

// call records the entries of a call.
func (w *world) call(what string, r Result) {
	w.trace = append(w.trace, fmt.Sprintf("%d %s", w.now, what))
	for _, logged := range r.Entries {
		text := logged.Entry.Encode()
		w.trace = append(w.trace, fmt.Sprintf("    %d %s", logged.ID, text))
		if n := len(w.log); n > 0 && w.log[n-1].ID >= logged.ID {
			w.fail("id %d follows %d", logged.ID, w.log[n-1].ID)
		}
		decoded, err := DecodeEntry(text)
		if err != nil {
			w.fail("%v", err)
			continue
		}
		if again := decoded.Encode(); string(again) != string(text) {
			w.fail("the entry becomes %s", again)
		}
		w.checkReasons(decoded)
		w.fold.Apply(logged.ID, decoded)
		w.table.Apply(logged.ID, decoded)
		w.log = append(w.log, Logged{logged.ID, decoded})
	}
}

func (w *world) fail(format string, args ...any) {
	if w.wrong == "" {
		w.wrong = fmt.Sprintf(format, args...)
	}
}

// update does a random update of a writer.
func (w *world) update(x *writer, conn Connection) {
	u := &Update{Writer: x.holder, Client: conn.Client, Generation: conn.Generation, Server: conn.Server, Limits: w.limits}
	if w.chance(3) {
		u.ByField = pick(w, fieldNames)
	}
	if w.chance(4) {
		u.Data = []byte(strconv.Itoa(w.IntN(9)))
	}
	if w.chance(4) {
		u.Exclude = conn.Client
	}
	names := append([]string{}, fieldNames...)
	w.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names[:w.IntN(3)*w.IntN(2)*w.IntN(2)] {
		u.If = append(u.If, w.condition(name))
	}
	if w.chance(4) {
		names = append([]string{}, familyNames...)
	}
	w.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names[:1+w.IntN(1+w.IntN(5))] {
		u.Ops = append(u.Ops, w.op(name, u.Client != ""))
	}
	if w.chance(4) {
		w.takeNumbers(u)
	}
	if w.chance(4) {
		u.From = w.now - int64(w.IntN(2*int(w.lease.Milliseconds()))) // some leases have ended then
	}
	w.apply(u)
}

// takeNumbers adds a counter, and operations on fields with its numbers.
func (w *world) takeNumbers(u *Update) {
	u.Counter, u.Take = pick(w, []string{"$$next", "$$next", "turn", "total"}), w.choose(0, 1, 2, 3)
	u.Ops = slices.DeleteFunc(u.Ops, func(op Op) bool { return op.Field == u.Counter })
	for i := range max(u.Take, 1) {
		op := w.op(strings.Replace(fmt.Sprintf("new/{n%d}", i+1), "{n1}", "{n}", 1), u.Client != "")
		if op.Numbered = w.chance(2); op.Kind == Set && w.chance(2) {
			op.Value = []byte(`{"n":{n},"m":["{n3}"]}`)
			if !op.Numbered {
				op.Value = []byte(`"{n}"`)
			}
		}
		if op.TTL == 0 && w.chance(2) {
			op.TTL = w.lease
		}
		u.Ops = append(u.Ops, op)
	}
	for i := range u.Ops {
		if op := &u.Ops[i]; Group(op.Field) == "p/" && w.chance(2) {
			op.Parent = pick(w, []string{"new/{n}", "new/{n2}"})
		}
	}
}

// apply applies an update to the state and the oracle.
func (w *world) apply(u *Update) {
	r, err := w.state.Apply(u, w.now, w.next)
	id := r.ID
	if err != nil {
		id = 0
	}
	w.call(fmt.Sprintf("Apply %+v: %v", *u, err), r)
	got, want := ofRefusal(err), w.oracle.update(u, w.now, id)
	if got.String() != want.String() {
		w.fail("the update is %v, want %v", got, want)
	}
	if err == nil && (len(r.Entries) == 0 || r.Entries[len(r.Entries)-1].ID != id) {
		w.fail("the last entry does not have the id %d", id)
	}
	if err != nil {
		w.checkRefusal(err.(*Refusal))
	}
	if err == nil {
		w.checkNumbers(u, r.Numbers)
		w.checkBy(u, r.Entries[len(r.Entries)-1].Entry)
	}
}

// checkBy checks the author of an entry, and the client that does not receive it.
func (w *world) checkBy(u *Update, e *Entry) {
	want, from := u.Client, ""
	if u.ByField != "" {
		want, from = "", u.Client
		if f := w.state.fields.get(u.ByField); f != nil && f.Value[0] == '"' {
			want = strings.Trim(string(f.Value), `"`)
		}
	}
	if e.By != want || e.From != from || e.Exclude != u.Exclude {
		w.fail("the entry is by %q, from %q, not for %q, want %q, %q and %q", e.By, e.From, e.Exclude, want, from, u.Exclude)
	}
}

// checkNumbers checks the results of additions.
func (w *world) checkNumbers(u *Update, numbers map[string]int64) {
	additions := 0
	if u.Counter != "" {
		additions++
		if _, found := numbers[u.Counter]; !found {
			w.fail("the results %v do not have the counter %s", numbers, u.Counter)
		}
	}
	for _, op := range u.Ops {
		if op.Kind == Add {
			additions++
		}
	}
	if len(numbers) != additions {
		w.fail("%d additions have the results %v", additions, numbers)
	}
	for name, n := range numbers {
		if f := w.state.fields.get(name); f != nil && string(f.Value) != strconv.FormatInt(n, 10) {
			w.fail("field %s: the value is %s, the result %d", name, f.Value, n)
		}
	}
}

func (w *world) condition(field string) Condition {
	c := Condition{Field: field, Kind: ConditionKind(w.IntN(4))}
	if c.Kind == AtMost {
		if c.Field = Group(field); c.Field == "" {
			return Condition{Field: field, Kind: Exists}
		}
		c.Max = w.IntN(4)
	}
	if c.Kind == IsID {
		if c.ID = w.id; w.chance(2) {
			c.ID = w.oracle.fields[field].id
		}
	}
	return c
}

// op returns a random operation on a field.
func (w *world) op(field string, client bool) Op {
	op := Op{Field: field, Kind: pick(w, []Kind{Set, Set, Set, Set, Delete, Add, Add, Touch}), GroupMax: groupMaxes[Group(field)]}
	switch op.Kind {
	case Set:
		op.Value = []byte(pick(w, []string{"0", "1", "2", "-3", "null", `"bob"`, "1.5", `{"a":[1,"<&>"]}`}))
	case Add:
		op.By, op.Min, op.Max = int64(w.IntN(5)-2), int64(w.choose(-3, 0)), int64(w.choose(2, 9))
	}
	if w.chance(3) {
		op.TTL = time.Duration(1+w.IntN(int(w.lease.Milliseconds()))) * time.Millisecond
	}
	op.Claim = w.chance(10)
	if rest, found := strings.CutPrefix(field, "p/"); found && w.chance(3) {
		op.Group, op.GroupMax = "p/"+Group(rest), 1
	}
	if w.chance(6) {
		op.Holder = pick(w, w.writers).holder
	}
	switch Group(field) {
	case "p/":
		op.HeldParent = w.chance(3)
		if w.chance(2) {
			op.Parent = pick(w, []string{"member/1", "member/1", "member/2", "p/1/x", "turn"})
		}
	case "$max/":
		op.Own = KeepOwners
	default:
		if op.Own = pick(w, []Ownership{KeepOwners, KeepOwners, Own, Own, Disown}); op.Own == Own && !client {
			op.Own = KeepOwners
		}
		op.Grace = pick(w, []time.Duration{0, 3 * time.Millisecond, 40 * time.Millisecond, GraceNever})
	}
	return op
}
