package task

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"testing/synctest"
	"time"
)

// look is a moment on the clock of a test, and the name of the check that looked.
type look struct {
	check string
	at    time.Duration
}

// table runs checks in a synctest bubble, and notes when each one looks.
type table struct {
	start  time.Time
	looks  []look
	checks []Check
}

// add adds a check that takes a second. Each list has the problems of one look.
func (tb *table) add(name string, apart time.Duration, lists ...[]string) {
	n := 0
	tb.checks = append(tb.checks, Check{Name: name, Apart: apart, Find: func(context.Context) (found []Finding, err error) {
		tb.looks = append(tb.looks, look{name, time.Since(tb.start)})
		if n == len(lists) {
			return nil, errors.New("the store does not answer")
		}
		for _, problem := range lists[n] {
			found = append(found, Finding{Subject: name, Problem: problem})
		}
		n++
		time.Sleep(time.Second) // on the clock of the bubble
		return found, nil
	}})
}

// run returns what is reported.
func (tb *table) run(ctx context.Context) (got []string, findings int, err error) {
	tb.start = time.Now()
	findings, err = Run(ctx, tb.checks, func(check string, f Finding) { got = append(got, fmt.Sprint(check, " ", f)) })
	return got, findings, err
}

// TestRun checks that a check with Apart looks twice, that long apart, and that only the findings
// of both looks count. A check without findings, or without Apart, looks once.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tb table
		tb.add("slow", Apart, []string{"x", "y"}, []string{"z", "y"})
		tb.add("once", 0, []string{"a"})
		tb.add("good", Apart, nil)
		tb.add("changing", Apart, []string{"b"}, nil)
		got, findings, err := tb.run(t.Context())
		want := []string{"once once: a", "slow slow: y"}
		if !reflect.DeepEqual(got, want) || findings != 2 || err != nil {
			t.Errorf("reported %q, %d findings, %v; want %q", got, findings, err, want)
		}
		const s = time.Second
		looks := []look{{"slow", 0}, {"once", s}, {"good", 2 * s}, {"changing", 3 * s}, {"slow", 11 * s}, {"changing", 14 * s}}
		if !reflect.DeepEqual(tb.looks, looks) {
			t.Errorf("looks %v, want %v", tb.looks, looks)
		}
	})
}

// TestRunErrors checks that a check that fails, in the first look or the second one, does not stop
// the others, and that the end of the context ends the wait.
func TestRunErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tb table
		tb.add("first", Apart)
		tb.add("second", Apart, []string{"x"})
		tb.add("once", 0, []string{"a"})
		got, findings, err := tb.run(t.Context())
		if want := []string{"once once: a"}; !reflect.DeepEqual(got, want) || findings != 1 {
			t.Errorf("reported %q, %d findings; want %q", got, findings, want)
		}
		if want := "check first: the store does not answer\ncheck second: the store does not answer"; err == nil || err.Error() != want {
			t.Errorf("error %v, want %q", err, want)
		}

		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		tb = table{}
		tb.add("ended", Apart, []string{"x"}, []string{"x"})
		if got, _, err := tb.run(ctx); got != nil || !errors.Is(err, context.DeadlineExceeded) || len(tb.looks) != 1 {
			t.Errorf("ended: reported %q, %v, looks %v", got, err, tb.looks)
		}
	})
}

func TestValidate(t *testing.T) {
	find := func(context.Context) ([]Finding, error) { return nil, nil }
	do := func(context.Context) (int, error) { return 0, nil }
	for want, checks := range map[string][]Check{
		"a check has no name":                 {{Find: find}},
		"check a: Find must be set":           {{Name: "a"}},
		"check a: Apart must not be negative": {{Name: "a", Find: find, Apart: -1}},
		"two checks have the name a":          {{Name: "a", Find: find}, {Name: "b", Find: find}, {Name: "a", Find: find}},
	} {
		if _, err := Run(t.Context(), checks, nil); err == nil || err.Error() != want {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	for want, r := range map[string]Round{
		"a round has no name":             {Every: 1, Do: do},
		"round a: Do must be set":         {Name: "a", Every: 1},
		"round a: Every must be positive": {Name: "a", Do: do},
	} {
		if err := r.Validate(); err == nil || err.Error() != want {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	for want, f := range map[string]Finding{
		"room:1: x is missing":                {Subject: "room:1", Problem: "x is missing"},
		"room:1: x is missing; remedy: add x": {"room:1", "x is missing", "add x"},
	} {
		if f.String() != want {
			t.Errorf("got %q, want %q", f, want)
		}
	}
}
