package queue

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"switchboard/internal/state"
	"switchboard/internal/wire"
)

//go:embed testdata/lua
var testFiles embed.FS

var submitScript = func() *StateScript {
	files, err := fs.Sub(testFiles, "testdata")
	if err != nil {
		panic(err)
	}
	return NewStateScript(files, "submit")
}()

// board is the channel of a board, with its key: a sorted set in Redis, or a map.
type board struct {
	fixture
	channel string
	scores  map[string]int // in memory
}

func newBoard(f fixture, channel string) *board { return &board{f, channel, map[string]int{}} }

// push returns a push that submits a score. change changes its update.
func (b *board) push(player string, score int, change func(*ChannelPush)) ChannelPush {
	push := ChannelPush{
		Channel: b.channel, Update: &state.Update{Ops: []state.Op{set("best", "")}, Writer: state.BackendHolder},
		Script: &ScriptCall{Script: submitScript, Keys: []string{b.key()}, Arg: fmt.Sprint(player, " ", score)},
	}
	push.Script.Memory = func(u *state.Update, _ int64) (string, func()) {
		old, found := b.scores[player]
		if found && old >= score {
			u.Ops = nil
			return fmt.Sprint(old), nil
		}
		u.Ops[0].Value = fmt.Appendf(nil, "%q", player)
		for _, other := range b.scores {
			if other >= score {
				u.Ops = nil
			}
		}
		return fmt.Sprint(score), func() { b.scores[player] = score }
	}
	if change != nil {
		change(&push)
	}
	return push
}

func (b *board) key() string { return b.keys.prefix + "lb_{" + b.channel + "}" }

func (b *board) submit(t *testing.T, player string, score int, change func(*ChannelPush)) (Appended, error) {
	t.Helper()
	return b.AppendChannel(t.Context(), b.push(player, score, change))
}

// want checks the scores.
func (b *board) want(t *testing.T, what, want string) {
	t.Helper()
	var got []string
	for player, score := range b.scores {
		got = append(got, fmt.Sprint(player, " ", score))
	}
	if b.rdb != nil {
		for _, z := range must(b.rdb.ZRangeWithScores(t.Context(), b.key(), 0, -1).Result())(t) {
			got = append(got, fmt.Sprint(z.Member, " ", z.Score))
		}
	}
	slices.Sort(got)
	equal(t, what, strings.Join(got, ", "), want)
}

func withKey(key string) func(*ChannelPush) { return func(p *ChannelPush) { p.Key = key } }

// testStateScript changes a state and a key of another package in one step.
func testStateScript(t *testing.T, open opener) {
	b := newBoard(open(t, Options{}), room)
	b.advance(t, 0)
	b.setServers(t, room, "s1")
	a := must(b.submit(t, "amy", 5, nil))(t)
	wantEntry(t, "the best score", a, `~{"set":{"best":"amy"}}`)
	equal(t, "reply and servers", fmt.Sprint(a.Reply, a.Servers), "5[s1]")
	a = must(b.submit(t, "bob", 3, withKey("k")))(t)
	equal(t, "another score", fmt.Sprint(a.ID, a.Data == nil, a.Reply), "0 true3")
	again := must(b.submit(t, "bob", 9, withKey("k")))(t)
	equal(t, "a duplicate", fmt.Sprint(again.Duplicate, again.ID, again.Reply), "true 03")
	plain := must(b.AppendChannel(t.Context(), ChannelPush{Channel: room, Key: "k", Data: []byte("1")}))(t)
	equal(t, "a message with the key", fmt.Sprint(plain.Duplicate, plain.ID), "true 0")
	a = must(b.submit(t, "bob", 7, withKey("k2")))(t)
	wantEntry(t, "a better score", a, `~{"set":{"best":"bob"}}`)
	again = must(b.submit(t, "bob", 9, withKey("k2")))(t)
	equal(t, "a duplicate with an entry", fmt.Sprint(again.Duplicate, again.ID == a.ID, again.Reply), "true true7")
	equal(t, "a worse score", must(b.submit(t, "bob", 6, nil))(t).Reply, "7")

	unmet := func(p *ChannelPush) { p.Update.If = []state.Condition{{Field: "best", Kind: state.IsAbsent}} }
	wantRefusal(t, "a condition", second(b.submit(t, "cat", 9, unmet)), wire.Conflict)
	wantRefusal(t, "a condition without operations", second(b.submit(t, "cat", 1, unmet)), wire.Conflict)
	b.want(t, "refusals change nothing", "amy 5, bob 7")
	_, err := b.submit(t, "cat", 9, func(p *ChannelPush) {
		p.Channel, p.ExistingOnly = "new", true
		p.Script.Keys = []string{b.keys.prefix + "lb_{new}"}
	})
	fails(t, "existing only", err, ErrNewChannel)
	b.wantState(t, "the field", map[string]string{"best": `"bob"`})

	must(b.update(t, leased(set("season", "1"), time.Minute)))(t)
	b.advance(t, time.Minute)
	a = must(b.submit(t, "cat", 2, nil))(t)
	wantEntry(t, "a field that was due", a, `~{"gone":{"season":"expired"}}`)
	a = must(b.submit(t, "dan", 1, func(p *ChannelPush) { p.Update.Data, p.Update.Client = []byte("7"), "dan/tab" }))(t)
	wantEntry(t, "with data", a, `~{"by":"dan/tab","data":7}`)
	a = must(b.submit(t, "dan", 2, func(p *ChannelPush) { p.Update.Client = "dan/tab" }))(t)
	equal(t, "a client without a change", a.ID, 0)
	b.want(t, "scores", "amy 5, bob 7, cat 2, dan 2")
	b.wantState(t, "at last", map[string]string{"best": `"bob"`})
	testStateScriptBatch(t, b.fixture)
}

// testStateScriptBatch submits to many boards at once, among other updates.
func testStateScriptBatch(t *testing.T, f fixture) {
	var pushes []ChannelPush
	var boards []*board
	for i := range 20 {
		b := newBoard(f, fmt.Sprint("board:", i))
		boards = append(boards, b)
		change := withKey("")
		if i%3 == 0 {
			change = withKey("k")
		}
		pushes = append(pushes, b.push("amy", i, change), ChannelPush{Channel: b.channel, Update: &state.Update{Ops: []state.Op{set("a", "1")}}})
	}
	for i, o := range f.AppendChannels(t.Context(), pushes) {
		ok(t, o.Err)
		if i%2 == 0 {
			equal(t, "reply", o.Value.Reply, fmt.Sprint(i/2))
		}
	}
	for i, b := range boards {
		b.want(t, b.channel, fmt.Sprint("amy ", i))
	}
	if f.rdb == nil {
		return
	}
	b := boards[0]
	a, err := b.submit(t, "bob", 50, func(p *ChannelPush) { p.Durable = true })
	fails(t, "durable without a replica", err, ErrNotReplicated)
	wantEntry(t, "durable", a, `~{"set":{"best":"bob"}}`)

	if _, err := b.submit(t, "cat", 99, func(p *ChannelPush) { p.Script.Arg = "malformed" }); err == nil {
		t.Error("an error of extend: no error")
	}
	b.want(t, "after an error", "amy 0, bob 50")
	ok(t, f.rdb.Set(t.Context(), boards[1].key(), "1", 0).Err())
	before := must(f.ReadChannel(t.Context(), "board:1", 0, 0))(t).Last
	if _, err := boards[1].submit(t, "bob", 99, nil); err == nil {
		t.Error("a key of a wrong type: no error")
	}
	equal(t, "last id after an error", must(f.ReadChannel(t.Context(), "board:1", 0, 0))(t).Last, before)
}
