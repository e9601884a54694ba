package kit_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"switchboard/internal/meter"
	"switchboard/kit"
	"switchboard/kit/index"
)

// TestPagesOfClientsAreBounded reads a list of documents whose sizes differ. The page of a client
// ends at its bytes, and all pages together have each document once. So does that
// of a backend, which is larger.
func TestPagesOfClientsAreBounded(t *testing.T) {
	ix := index.NewMemory()
	var all []string
	for n := range 100 {
		id := fmt.Sprintf("%03d", n)
		all = append(all, id)
		if err := ix.Put(t.Context(), index.Card{ID: id, Version: 1, Lists: map[string]int64{"all": 1}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, size := range []int{0, 100, 1 << 10, 8 << 10, 1 << 20} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			read := func(ctx context.Context, cards []index.Card) ([]string, error) {
				meter.Add(ctx, len(cards)*size)
				return index.IDs(cards), nil
			}
			var seen []string
			for q := (index.Query{List: "all", Limit: 60}); ; {
				m := new(meter.Meter)
				ctx := meter.With(t.Context(), m)
				page, next, err := kit.ReadPage(ctx, ix, q, true, read, func(string) bool { return true })
				if err != nil || len(page) == 0 {
					t.Fatalf("%d documents, %v", len(page), err)
				}
				if most := kit.ClientBytes + 4*size + 60*100; m.Bytes() > most {
					t.Errorf("a page reads %d bytes, at most %d were expected", m.Bytes(), most)
				}
				if size <= 100 && len(page) != min(60, len(all)-len(seen)) {
					t.Errorf("a page of %d small documents", len(page))
				}
				seen = append(seen, page...)
				if q.Cursor = next; next == "" {
					break
				}
			}
			if !slices.Equal(seen, all) {
				t.Errorf("the pages have %v", seen)
			}
			seen = nil
			for q := (index.Query{List: "all", Limit: 60}); ; {
				page, next, err := kit.ReadPage(t.Context(), ix, q, true, read, func(string) bool { return true })
				if err != nil || len(page) == 0 || (len(page)-25)*size > kit.BackendBytes || size <= 1<<10 && len(page) < 40 {
					t.Fatalf("a backend gets %d documents, %v", len(page), err)
				}
				seen = append(seen, page...)
				if q.Cursor = next; next == "" {
					break
				}
			}
			if !slices.Equal(seen, all) {
				t.Errorf("the pages of a backend have %v", seen)
			}
		})
	}
}
