package account

import (
	"fmt"
	"testing"
	"time"

	"switchboard/broker/extension"
	"switchboard/internal/await"
	"switchboard/kit"
	"switchboard/kit/kittest"
)

// TestSessions: the document of a user, its versions, conditions and end.
func TestSessions(t *testing.T) {
	kittest.EachStore(t, func(t *testing.T, s kittest.Store) {
		var sessions *Sessions
		b := s.Start(t, kittest.With(func(h *extension.Host) (extension.Extension, error) {
			var err error
			if sessions, err = NewSessions(h, SessionOptions{}); err != nil {
				return extension.Extension{}, err
			}
			return sessions.Extension(), nil
		}))
		const path = "/v1/sessions/amy"
		b.Refused(t, "not_found", "GET", path, "")
		b.Refused(t, "conflict", "PUT", path, `{"level":1}`, "If-Match", "*")
		first := b.OK(t, "PUT", path, `{"level": 1}`, "If-None-Match", "*")
		got := b.OK(t, "GET", path, "")
		if fmt.Sprint(got["data"]) != "map[level:1]" || got["version"] != first["version"] {
			t.Errorf("got %v after %v", got, first)
		}
		if left := time.Until(time.UnixMilli(int64(got["until"].(float64)))); left < 50*time.Minute || left > 61*time.Minute {
			t.Errorf("the session ends in %v", left)
		}
		version := fmt.Sprintf("%.0f", first["version"])
		b.OK(t, "PUT", path+"?ttl=60", `{"level":2}`, "If-Match", `"`+version+`"`)
		var answer kittest.Object
		status := b.Call(t, "PUT", path, `{"level":3}`, &answer, "If-Match", version)
		if e := answer["error"].(kittest.Object); status != 409 || fmt.Sprint(e["data"].(kittest.Object)["data"]) != "map[level:2]" {
			t.Errorf("a conflict answers %d %v", status, answer)
		}
		b.Refused(t, "conflict", "DELETE", path, "", "If-Match", version)
		for _, header := range [][]string{{"If-Match", "x"}, {"If-Match", "-1"}, {"If-None-Match", "1"}, {"If-Match", "1", "If-None-Match", "*"}} {
			b.Refused(t, "bad_request", "PUT", path, `1`, header...)
		}
		b.Refused(t, "bad_request", "PUT", path, `{"level":`)
		b.Refused(t, "bad_request", "PUT", path+"?ttl=0", `1`)
		b.Refused(t, "too_large", "PUT", path, `"`+string(make([]byte, MaxDocument))+`"`)
		b.OK(t, "DELETE", path, "")
		b.OK(t, "DELETE", path, "")
		b.Refused(t, "not_found", "GET", path, "")

		ok[Document](t)(sessions.Put(t.Context(), "amy", []byte(`1`), time.Millisecond, kit.Match{}))
		await.True(t, "the session has ended", func() bool {
			return b.Call(t, "GET", path, "", nil) == 404
		})
	})
}

// TestSessionRaces: of many writers that saw the same version, one succeeds.
func TestSessionRaces(t *testing.T) {
	kittest.EachStore(t, func(t *testing.T, s kittest.Store) {
		var sessions *Sessions
		s.Start(t, kittest.With(func(h *extension.Host) (extension.Extension, error) {
			sessions, _ = NewSessions(h, SessionOptions{})
			return sessions.Extension(), nil
		}))
		for _, m := range []func() kit.Match{
			func() kit.Match { return kit.Match{Absent: true} },
			func() kit.Match { return kit.Match{Version: ok[Document](t)(sessions.Get(t.Context(), "amy")).Version} },
		} {
			match := m()
			errs := parallel(8, func(i int) error {
				_, err := sessions.Put(t.Context(), "amy", []byte(fmt.Sprint(i)), 0, match)
				return err
			})
			if n := successes(t, errs); n != 1 {
				t.Errorf("%d of 8 writers succeeded", n)
			}
		}
	})
}

// TestSessionTimes: the answer of a put has the end that is stored, also if the clock of the store
// is another one.
func TestSessionTimes(t *testing.T) {
	kittest.Each(t, 1, kittest.With(func(h *extension.Host) (extension.Extension, error) {
		s, err := NewSessions(h, SessionOptions{})
		if err != nil {
			return extension.Extension{}, err
		}
		return s.Extension(), nil
	}), func(t *testing.T, b *kittest.Brokers) {
		if b.Memory {
			b.Advance(time.Hour)
		}
		for _, query := range []string{"", "?ttl=60"} {
			put := b.At(0).OK(t, "PUT", "/v1/sessions/amy"+query, `1`)
			if got := b.At(0).OK(t, "GET", "/v1/sessions/amy", ""); fmt.Sprint(got) != fmt.Sprint(put) {
				t.Errorf("get answers %v after %v", got, put)
			}
		}
	})
}
