package heartbeat

import (
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/redispipe"
	"switchboard/internal/redistest"
)

var (
	single  *redistest.Server
	cluster *redistest.Cluster
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m, &single, &cluster)) }

func TestScriptHeaders(t *testing.T) { redistest.CheckScripts(t, single.Client(t), luaFiles) }

func TestJanitors(t *testing.T) {
	for name, client := range map[string]redis.UniversalClient{"redis": single.Client(t), "cluster": cluster.Client(t)} {
		t.Run(name, func(t *testing.T) {
			r := NewRedis(redispipe.New(client, redispipe.Options{}), "p:")
			if list, err := r.List(t.Context()); len(list) != 0 || err != nil {
				t.Errorf("before: %v, %v", list, err)
			}
			a := Janitor{ID: "a", Version: "1.2", StartedAt: 5, Webhooks: true, Rounds: map[string]Round{"servers": {3000, 10, 2, 1}}}
			b := Janitor{ID: "b", Once: true}
			for _, j := range []Janitor{b, {ID: "a"}, a} {
				if err := r.Report(t.Context(), j); err != nil {
					t.Fatal(err)
				}
			}
			list, err := r.List(t.Context())
			if err != nil || len(list) != 2 {
				t.Fatal(list, err)
			}
			for i := range list {
				if list[i].Seen.Year() < 2026 {
					t.Errorf("seen at %v", list[i].Seen)
				}
				list[i].Seen = time.Time{}
			}
			if list[0].ID == "b" { // both reported in the same millisecond
				list[0], list[1] = list[1], list[0]
			}
			if !reflect.DeepEqual(list, []Janitor{a, b}) {
				t.Errorf("%+v", list)
			}
			old, broken := "1 {}", "x"
			if err := client.HSet(t.Context(), "p:j_list", "old", old, "broken", broken).Err(); err != nil {
				t.Fatal(err)
			}
			if list, err := r.List(t.Context()); err == nil || len(list) != 3 {
				t.Errorf("with a broken description: %v, %v", list, err)
			}
			if err := r.Report(t.Context(), a); err != nil {
				t.Fatal(err)
			}
			if err := r.Remove(t.Context(), "b"); err != nil {
				t.Fatal(err)
			}
			if list, err := r.List(t.Context()); err != nil || len(list) != 1 || list[0].ID != "a" {
				t.Errorf("after a day, and the end of one: %v, %v", list, err)
			}
		})
	}
}
