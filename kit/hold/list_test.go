package hold_test

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"testing"

	"switchboard/internal/await"
	"switchboard/internal/wire"
	"switchboard/kit"
	"switchboard/kit/hold"
	"switchboard/kit/index"
	"switchboard/kit/kittest"
)

var gauge = regexp.MustCompile(`(?m)^switchboard_holds\{state="(held|sold)"\} (\d+)$`)

// gauges returns the places that a broker's metrics show, like "held 5 sold 3".
func gauges(t *testing.T, b *kittest.Broker) (text string) {
	t.Helper()
	resp, err := http.Get("http://" + b.HTTP + "/metrics")
	ok(t, err)
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	ok(t, err)
	for _, m := range gauge.FindAllStringSubmatch(string(page), -1) {
		text += m[1] + " " + m[2] + " "
	}
	return text
}

// listed returns what GET /v1/holds of a broker answers: the names with the free places, and the
// cursor.
func (s *setup) listed(broker int, query string) (names []string, cursor string) {
	s.t.Helper()
	var page hold.Page
	if status := s.At(broker).Call(s.t, "GET", "/v1/holds"+query, "", &page); status != http.StatusOK {
		s.t.Fatalf("GET /v1/holds%s: %d", query, status)
	}
	for _, r := range page.Resources {
		names = append(names, fmt.Sprint(r.Name, " ", r.Free))
	}
	return names, page.Cursor
}

// TestList checks the list of resources and the numbers of places in the metrics, on brokers that
// share an index.
func TestList(t *testing.T) {
	lists := index.NewMemory()
	over(t, hold.Options{Index: lists}, func(s *setup) {
		t, ctx := s.t, s.t.Context()
		prefix := fmt.Sprintf("%p-", s) // the index is the same in all stores
		for i, name := range []string{"c", "a", "b"} {
			_, err := s.at(i).Put(ctx, prefix+name, hold.PutRequest{Resource: hold.Resource{Capacity: 9, HoldMS: s.short.Milliseconds()}})
			ok(t, err)
			ok(t, s.at(i).Round(ctx))
		}
		_, err := s.at(1).Hold(ctx, prefix+"b", hold.TakeRequest{Count: 5})
		ok(t, err)
		_, err = s.at(1).Sell(ctx, prefix+"a", hold.TakeRequest{Count: 3})
		ok(t, err)
		names, cursor := s.listed(2, "?limit=2")
		equal(t, "first page", names, []string{prefix + "a 6", prefix + "b 4"})
		names, cursor = s.listed(0, "?limit=2&cursor="+cursor)
		equal(t, "second page", fmt.Sprint(names, cursor), fmt.Sprint([]string{prefix + "c 9"}, ""))
		_, err = s.at(0).List(ctx, "x", 0)
		fails(t, err, wire.BadRequest)

		ok(t, s.at(1).Round(ctx))
		for i := range s.holds {
			equal(t, "metrics", gauges(t, s.At(i)), "held 5 sold 3 ")
		}
		if !s.Memory { // there the clocks of the store and the index differ
			await.True(t, "a round sees the end of the hold", func() bool {
				ok(t, s.at(2).Round(ctx))
				return gauges(t, s.At(0)) == "held 0 sold 3 "
			})
		}
		for i, name := range []string{"a", "b", "c"} {
			ok(t, s.at(i).Delete(ctx, prefix+name, kit.Match{}))
			ok(t, s.at(i).Round(ctx))
		}
		equal(t, "metrics", gauges(t, s.At(0)), "held 0 sold 0 ")
		names, _ = s.listed(1, "")
		equal(t, "removed resources", len(names), 0)
	})
}

// TestListAfterCrash creates a resource on a broker that ends before its next round.
func TestListAfterCrash(t *testing.T) {
	over(t, hold.Options{Index: index.NewMemory()}, func(s *setup) {
		if s.Memory {
			s.t.Skip("there is one broker")
		}
		s.put(hold.Resource{Capacity: 3})
		s.At(0).Stop()
		await.True(s.t, "another broker lists the resource", func() bool {
			ok(s.t, s.at(1).Round(s.t.Context()))
			names, _ := s.listed(1, "")
			return len(names) == 1
		})
		ok(s.t, s.at(1).Delete(s.t.Context(), show, kit.Match{}))
		ok(s.t, s.at(1).Round(s.t.Context()))
	})
}

// TestListHolds checks the pages of the holds of a resource, on brokers that share a store.
func TestListHolds(t *testing.T) {
	over(t, hold.Options{}, func(s *setup) {
		t, ctx := s.t, s.t.Context()
		s.put(hold.Resource{Capacity: 20})
		list := func(want int, path string) (ids []string, cursor string) {
			t.Helper()
			var page hold.HoldPage
			if status := s.At(len(path)).Call(t, "GET", "/v1/holds/"+path, "", &page); status != want {
				t.Fatalf("GET %s: %d, want %d", path, status, want)
			}
			for _, h := range page.Holds {
				got, err := s.at(1).Get(ctx, show, h.ID)
				ok(t, err)
				equal(t, "a hold of a page", *h, *got)
				ids = append(ids, h.ID)
			}
			return ids, page.Cursor
		}
		var empty map[string]any
		s.At(0).Call(t, "GET", "/v1/holds/"+show+"/holds", "", &empty)
		equal(t, "no holds", empty, map[string]any{"holds": []any{}})
		for i, id := range []string{"c", "a", "e", "b", "d"} {
			user := ""
			if i > 0 {
				user = "user/" + id // several in a page
			}
			_, err := s.at(i).Hold(ctx, show, hold.TakeRequest{ID: id, User: user, Count: 2})
			ok(t, err)
		}
		_, err := s.at(0).Confirm(ctx, hold.Change{Resource: show, ID: "b"})
		ok(t, err)
		_, err = s.at(1).Release(ctx, hold.Change{Resource: show, ID: "e"})
		ok(t, err)

		all, cursor := list(200, show+"/holds")
		equal(t, "one page", fmt.Sprint(all, cursor), fmt.Sprint([]string{"a", "b", "c", "d", "e"}, ""))
		var pages [][]string
		for next := ""; ; {
			page, cursor := list(200, show+"/holds?limit=2&cursor="+next)
			if pages, next = append(pages, page), cursor; next == "" {
				break
			}
		}
		equal(t, "pages", pages, [][]string{{"a", "b"}, {"c", "d"}, {"e"}})
		held, cursor := list(200, show+"/holds?state=held&limit=2")
		equal(t, "held ones among the first two", held, []string{"a"})
		held, cursor = list(200, show+"/holds?state=held&limit=2&cursor="+cursor)
		equal(t, "held ones among the next two", held, []string{"c", "d"})
		held, cursor = list(200, show+"/holds?state=held&limit=2&cursor="+cursor)
		equal(t, "no held ones are left", fmt.Sprint(held, cursor), "[]")
		sold, _ := list(200, show+"/holds?state=sold")
		equal(t, "sales", sold, []string{"b"})
		for _, query := range []string{"limit=1001", "limit=0x", "cursor=a/b", "state=free", "page=2"} {
			list(400, show+"/holds?"+query)
		}
		list(404, "nowhere/holds")
	})
}

// TestListLongHolds: a page of long records ends before its limit.
func TestListLongHolds(t *testing.T) {
	over(t, hold.Options{}, func(s *setup) {
		t, ctx, want := s.t, s.t.Context(), 90
		s.put(hold.Resource{Seats: seats("*"), Capacity: hold.MaxCapacity})
		for i := range want {
			names := make([]string, hold.MaxSeats)
			for k := range names {
				names[k] = fmt.Sprintf("%0*d", hold.MaxSeatName, i*hold.MaxSeats+k)
			}
			_, err := s.at(i).Sell(ctx, show, hold.TakeRequest{ID: fmt.Sprint(i), Seats: names})
			ok(t, err)
		}
		first, err := s.at(0).ListHolds(ctx, show, hold.HoldQuery{Limit: kit.MaxPage})
		ok(t, err)
		rest, err := s.at(1).ListHolds(ctx, show, hold.HoldQuery{Limit: kit.MaxPage, Cursor: first.Cursor})
		ok(t, err)
		if n := len(first.Holds); n < want/2 || n == want || rest.Cursor != "" || n+len(rest.Holds) != want {
			t.Errorf("pages of %d and %d holds, and the cursor %q", n, len(rest.Holds), rest.Cursor)
		}
	})
}
