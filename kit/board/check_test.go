package board

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"switchboard/broker/extension"
	"switchboard/internal/state"
	"switchboard/queue"
)

// damages are changes of the keys of a board with amy, bob and cat, by the finding.
var damages = map[string]func(f *fixture, t *testing.T, scores, players string) error{
	"has the member 000000000009:eve, but": addMember(-7, "000000000009:eve"),
	"has the malformed member":             addMember(-7, "eve"),
	"another arrival of the player":        addMember(-7, "000000000008:amy"),
	"bob, but the entry in":                addMember(-1, "000000000001:bob"),
	"is in another place than its score":   addMember(-1, "000000000001:bob"),
	"a malformed record of the player bob": setPlayer("bob", "much 01"),
	"has been given already":               setPlayer("", "1"),
	"is absent": func(f *fixture, t *testing.T, scores, _ string) error {
		return f.store.Redis.ZRem(t.Context(), scores, "000000000001:bob").Err()
	},
	"do not end at the same time": func(f *fixture, t *testing.T, scores, _ string) error {
		return f.store.Redis.Expire(t.Context(), scores, time.Hour).Err()
	},
	"has the wrong type": func(f *fixture, t *testing.T, _, players string) error {
		return f.store.Redis.Set(t.Context(), players, "", 0).Err()
	},
	"the field top does not show": setTop(state.Op{Kind: state.Set, Value: []byte(`{"entries":[{"player":"amy","score":10},{"player":"bob","score":9},{"player":"cat","score":7}]}`)}),
	"the field top is malformed":  setTop(state.Op{Kind: state.Set, Value: []byte(`[]`)}),
	"the field top is absent":     setTop(state.Op{Kind: state.Delete}),
}

func addMember(place float64, member string) func(*fixture, *testing.T, string, string) error {
	return func(f *fixture, t *testing.T, scores, _ string) error {
		return f.store.Redis.ZAdd(t.Context(), scores, redis.Z{Score: place, Member: member}).Err()
	}
}

func setPlayer(player, record string) func(*fixture, *testing.T, string, string) error {
	return func(f *fixture, t *testing.T, _, players string) error {
		return f.store.Redis.HSet(t.Context(), players, player, record).Err()
	}
}

func setTop(op state.Op) func(*fixture, *testing.T, string, string) error {
	return func(f *fixture, t *testing.T, scores, _ string) error {
		op.Field = topField
		_, channel, _ := strings.Cut(strings.TrimSuffix(scores, "}"), "{")
		u := &state.Update{Writer: state.BackendHolder, Ops: []state.Op{op}}
		_, err := f.any().host.Change(t.Context(), channel, u, extension.ChangeOptions{})
		return err
	}
}

// TestCheck damages the keys of boards in Redis. The check finds each damage, and nothing else.
func TestCheck(t *testing.T) {
	eachStore(t, Options{Boards: map[string]Board{"damaged-*": {}, "monthly": {Season: "@monthly"}}}, func(t *testing.T, f *fixture) {
		if !f.store.Shared {
			return
		}
		submit := func(board string) {
			for i, player := range []string{"amy", "bob", "cat"} {
				f.submit(t, Score{Board: board, Player: player, Score: int64(10 - i)})
			}
		}
		submit("monthly")
		store := NewRedis(f.store.Pipe, f.store.Prefix)
		check := Check(CheckOptions{Store: store, States: f.store.Queue.(*queue.Redis)})
		n := 0
		for want, damage := range damages {
			n++
			board := fmt.Sprint("damaged-", n)
			submit(board)
			problems := func() (list []string) {
				found, err := check.Find(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for _, d := range found {
					if !strings.HasPrefix(d.Subject, "board:damaged-") || d.Remedy == "" {
						t.Errorf("found %v", d)
					}
					if d.Subject == "board:"+board {
						list = append(list, d.Problem)
					}
				}
				return list
			}
			if got := problems(); len(got) > 0 {
				t.Errorf("before the damage: found %q", got)
			}
			if err := damage(f, t, store.keys.scores(board, always), store.keys.players(board, always)); err != nil {
				t.Fatal(err)
			}
			if got := problems(); !strings.Contains(strings.Join(got, "\n"), want) {
				t.Errorf("found %q, want %q", got, want)
			}
		}
	})
}

// TestCheckLarge checks a board of several pages.
func TestCheckLarge(t *testing.T) {
	eachStore(t, Options{Boards: map[string]Board{"big": {}}}, func(t *testing.T, f *fixture) {
		if !f.store.Shared {
			return
		}
		forEach(3*checkPage, func(i int) { f.submit(t, Score{Board: "big", Player: fmt.Sprint("player-", i), Score: int64(i % 7)}) })
		check := Check(CheckOptions{Store: NewRedis(f.store.Pipe, f.store.Prefix), States: f.store.Queue.(*queue.Redis)})
		if found, err := check.Find(t.Context()); err != nil || len(found) > 0 {
			t.Errorf("found %v, %v", found, err)
		}
		k := keys{f.store.Prefix}
		if err := f.store.Redis.HDel(t.Context(), k.players("big", always), "player-5").Err(); err != nil {
			t.Fatal(err)
		}
		if found, err := check.Find(t.Context()); err != nil || len(found) != 1 {
			t.Errorf("found %v, %v, want the entry of player-5", found, err)
		}
	})
}
