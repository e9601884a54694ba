package loglimit

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
)

// log keeps the lines of a log until take.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// take returns the lines since the last call.
func (l *log) take() []string {
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(l.text.String()), "\n")
	l.text.Reset()
	if lines[0] == "" {
		return nil
	}
	return lines
}

func expect(t *testing.T, l *log, want ...string) {
	t.Helper()
	got := l.take()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("logged\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestRepeatedWarnings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := new(log)
		l := New(zerolog.New(out), time.Second)
		limited := l.Logger().With().Str("part", "hub").Logger() // children are limited too
		fail := func() { limited.Warn().Err(errors.New("unavailable")).Msg("store call failed") }

		fail()
		expect(t, out, `{"level":"warn","part":"hub","error":"unavailable","message":"store call failed"}`)
		for range 999 {
			fail()
		}
		limited.Error().Msg("another message")
		expect(t, out, `{"level":"error","part":"hub","message":"another message"}`)
		<-time.After(time.Second)
		expect(t, out, `{"level":"warn","repeated":999,"within":"1s","message":"store call failed"}`)
		fail()
		expect(t, out)
		<-time.After(time.Second)
		expect(t, out, `{"level":"warn","repeated":1,"within":"1s","message":"store call failed"}`)
		<-time.After(time.Second)
		expect(t, out)
		fail() // after an interval without this message it is logged at once again
		expect(t, out, `{"level":"warn","part":"hub","error":"unavailable","message":"store call failed"}`)
		<-time.After(time.Second)
		expect(t, out)
		if len(l.messages) != 0 {
			t.Errorf("%d messages are kept", len(l.messages))
		}
	})
}

func TestOtherLevelsPass(t *testing.T) {
	out := new(log)
	l := New(zerolog.New(out).Level(zerolog.InfoLevel), time.Hour)
	limited := l.Logger()
	for range 3 {
		limited.Info().Msg("joined")
		limited.Debug().Msg("not wanted")
	}
	if n := strings.Count(out.text.String(), "joined"); n != 3 {
		t.Errorf("%d of 3 lines", n)
	}
	silent := New(zerolog.Nop(), time.Hour)
	quiet := silent.Logger()
	quiet.Warn().Msg("nothing")
	silent.Warn("nothing", nil)
	silent.Close()
}

// TestFieldsOfLastWarning checks that the line with the count has the fields of the last warning.
func TestFieldsOfLastWarning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := new(log)
		l := New(zerolog.New(out), time.Second)
		from := func(address string) {
			l.Warn("refused", func(e *zerolog.Event) { e.Str("address", address) })
		}
		from("a")
		from("b")
		from("c")
		<-time.After(time.Second)
		expect(t, out, `{"level":"warn","address":"a","message":"refused"}`,
			`{"level":"warn","repeated":2,"within":"1s","address":"c","message":"refused"}`)
	})
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := new(log)
		l := New(zerolog.New(out), time.Second)
		limited := l.Logger()
		for range 3 {
			limited.Error().Msg("away")
		}
		l.Close()
		expect(t, out, `{"level":"error","message":"away"}`, `{"level":"error","repeated":2,"within":"1s","message":"away"}`)
		limited.Error().Msg("away")
		limited.Error().Msg("away")
		expect(t, out, `{"level":"error","message":"away"}`, `{"level":"error","message":"away"}`)
		<-time.After(time.Minute)
		expect(t, out)
	})
}
