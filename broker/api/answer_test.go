package api

import (
	"encoding/json"
	"testing"
)

func TestAnswers(t *testing.T) {
	yes, no, two := true, false, 2
	list := []pushed{
		{Results: []result{{Channel: "news", ID: 735325130218701, Servers: &two}}},
		{Results: []result{{Channel: "news", ID: 7, Servers: new(int), Duplicate: true}, {Channel: "sports", ID: 8, Servers: &two}}},
		{Results: []result{{Client: "phone", ID: 735325130218701, Online: &no}}},
		{Results: []result{{Client: "phone", ID: 9, Online: &yes, Duplicate: true}}},
	}
	plain := len(list)
	list = append(list,
		pushed{Results: []result{{Channel: `a"b`, ID: 1}}},
		pushed{Results: []result{{Channel: "a<b>&c", ID: 1}}},
		pushed{Results: []result{{Client: "ü", ID: 1}}},
		pushed{Results: []result{{User: "alice", Clients: &[]clientResult{{Client: "phone", ID: 3}}}}},
		pushed{Results: []result{{All: true, ID: 3, Servers: &two}}},
		pushed{Results: []result{{Channel: "news", Error: &refusalBody{"forbidden", "no"}}}},
		pushed{Results: []result{{Channel: "news", ID: 1, Servers: &two}, {Channel: "news", Error: &refusalBody{"forbidden", "no"}}}},
		pushed{Error: &refusalBody{"bad_request", "no"}},
	)
	same := func(got []byte, v any) {
		t.Helper()
		want, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want)+"\n" {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	for i, p := range list {
		if _, ok := appendPushed(nil, p.Results); ok != (i < plain) {
			t.Errorf("%+v: written without encoding/json: %v", p, ok)
		}
		if p.Error == nil {
			same(accepted(p.Results, nil).Body, p)
		}
	}
	for _, n := range []int{1, plain, len(list)} {
		same(answered(list[:n], nil).Body, map[string]any{"results": list[:n]})
	}
}

func BenchmarkAppendPushed(b *testing.B) {
	two := 2
	results := []result{{Channel: "news", ID: 735325130218701, Servers: &two}}
	var buf []byte
	b.Run("plain", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			buf, _ = appendPushed(buf[:0], results)
		}
	})
	b.Run("long", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := json.Marshal(pushed{Results: results}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
