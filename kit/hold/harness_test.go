package hold_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"switchboard/broker"
	"switchboard/broker/extension"
	"switchboard/internal/await"
	"switchboard/internal/wire"
	"switchboard/kit/hold"
	"switchboard/kit/kittest"
)

func TestMain(m *testing.M) { os.Exit(kittest.Main(m)) }

// show is the resource of the tests.
const show = "play-7"

// testTimeout is a safety net: a test that waits this long has failed.
const testTimeout = 20 * time.Second

// setup is the brokers of a test, and their holds.
type setup struct {
	*kittest.Brokers
	t     *testing.T
	holds []*hold.Holds
	hosts []*extension.Host
	queue broker.Queue
	// short is how long a hold lasts in tests that wait for its end: 15 minutes in memory, where the
	// clock can be advanced.
	short time.Duration
}

// over runs a test over all stores with three brokers.
func over(t *testing.T, opts hold.Options, test func(*setup)) {
	s := new(setup)
	kittest.Each(t, 3, func(o *broker.Options) {
		s.queue = o.Store.Queue
		o.Extensions = append(o.Extensions, func(host *extension.Host) (extension.Extension, error) {
			h, err := hold.New(host, opts)
			if err != nil {
				return extension.Extension{}, err
			}
			s.holds, s.hosts = append(s.holds, h), append(s.hosts, host)
			e := h.Extension()
			e.Run = nil // tests make the rounds
			return e, nil
		})
	}, func(t *testing.T, b *kittest.Brokers) {
		last := s.holds[len(s.holds)-len(b.List):]
		hosts := s.hosts[len(s.hosts)-len(b.List):]
		one := &setup{Brokers: b, t: t, holds: last, hosts: hosts, queue: s.queue, short: 300 * time.Millisecond}
		if b.Memory {
			one.short = 15 * time.Minute
		}
		test(one)
	})
}

// at returns the holds of a broker by its number, modulo the number of brokers.
func (s *setup) at(i int) *hold.Holds { return s.holds[i%len(s.holds)] }

// put creates the resource.
func (s *setup) put(r hold.Resource) *hold.Status {
	s.t.Helper()
	status, err := s.at(0).Put(s.t.Context(), show, hold.PutRequest{Resource: r})
	ok(s.t, err)
	return status
}

// pass lets the time of a hold pass.
func (s *setup) pass(h *hold.Hold) {
	s.t.Helper()
	if s.Memory {
		s.Advance(time.Duration(h.Until-time.Now().UnixMilli()+1000) * time.Millisecond)
		return
	}
	await.True(s.t, "the hold has expired", func() bool {
		got, err := s.at(0).Get(s.t.Context(), show, h.ID)
		return err == nil && got.State != hold.Held
	})
}

// want checks how many places are sold and held.
func (s *setup) want(sold, held int) {
	s.t.Helper()
	for i := range s.holds {
		status, err := s.at(i).Status(s.t.Context(), show)
		ok(s.t, err)
		if got := [3]int{status.Sold, status.Held, status.Free}; got != [3]int{sold, held, status.Capacity - sold - held} {
			s.t.Fatalf("%d sold, %d held, %d free, want %d sold and %d held of %d", got[0], got[1], got[2], sold, held, status.Capacity)
		}
	}
}

// fails checks the code of an error, and returns its facts.
func fails(t *testing.T, err error, code wire.ErrorCode) any {
	t.Helper()
	e, found := errors.AsType[*wire.Error](err)
	if !found || e.Code != code {
		t.Fatalf("the error is %v, want %s", err, code)
	}
	if d, found := errors.AsType[*wire.DetailedError](err); found {
		return d.Data
	}
	return nil
}

// codeOf returns the code of an error.
func codeOf(err error) wire.ErrorCode {
	e, _ := errors.AsType[*wire.Error](err)
	if e == nil {
		return ""
	}
	return e.Code
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("%s: %v, want %v", what, got, want)
	}
}

func seats(names ...string) []string { return slices.Clone(names) }
