package api

import (
	"encoding/json"
	"testing"
)

func TestAnswers(t *testing.T) {
	yes, no, two := true, false, 2
	list := []pushResponse{
		{Results: []result{{Channel: "news", ID: 735325130218701, Servers: &two}}},
		{Results: []result{{Channel: "news", ID: 7, Servers: new(int), Duplicate: true}, {Channel: "sports", ID: 8, Servers: &two}}},
		{Results: []result{{Client: "phone", ID: 735325130218701, Online: &no}}},
		{Results: []result{{Client: "phone", ID: 9, Online: &yes, Duplicate: true}}},
	}
	list = append(list, pushResponse{Results: []result{{Channel: "news", ID: 5, Servers: &two, Duplicate: true, Fields: json.RawMessage(`{"a/1":-3,"n":7}`)}}})
	direct := len(list)
	list = append(list,
		pushResponse{Results: []result{{Channel: `a"b`, ID: 1}}},
		pushResponse{Results: []result{{Channel: "a<b>&c", ID: 1}}},
		pushResponse{Results: []result{{Client: "ü", ID: 1}}},
		pushResponse{Results: []result{{User: "alice", Clients: &[]clientResult{{Client: "phone", ID: 3}}}}},
		pushResponse{Results: []result{{All: true, ID: 3, Servers: &two}}},
		pushResponse{Results: []result{{Channel: "news", Error: newErrorBody("forbidden", "no")}}},
		pushResponse{Results: []result{{Channel: "news", ID: 1, Servers: &two}, {Channel: "news", Error: newErrorBody("forbidden", "no")}}},
		pushResponse{Error: newErrorBody("bad_request", "no")},
	)
	expect := func(got []byte, v any) {
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
		if _, ok := appendPushResponse(nil, p.Results); ok != (i < direct) {
			t.Errorf("%+v: written without encoding/json: %v", p, ok)
		}
		if p.Error == nil {
			expect(pushAnswer(p.Results, nil).Body, p)
		}
	}
	for _, n := range []int{1, direct, len(list)} {
		expect(batchAnswer(list[:n], nil).Body, map[string]any{"results": list[:n]})
	}
}

func BenchmarkAppendPushResponse(b *testing.B) {
	two := 2
	results := []result{{Channel: "news", ID: 735325130218701, Servers: &two}}
	var buf []byte
	b.Run("append", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			buf, _ = appendPushResponse(buf[:0], results)
		}
	})
	b.Run("encoding/json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := json.Marshal(pushResponse{Results: results}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
