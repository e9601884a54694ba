package hold_test

import (
	"fmt"
	"testing"

	"switchboard/broker/extension"
	"switchboard/internal/wire"
	"switchboard/kit/hold"
	"switchboard/kit/kittest"
)

// BenchmarkLargeResource takes and releases a place of a resource with hold.MaxCapacity places, of
// which one is free, and then asks for a place while none is free. All other places are held, each
// by another user.
func BenchmarkLargeResource(b *testing.B) {
	for name, open := range map[string]func() kittest.Store{
		"memory": kittest.NewMemory,
		"redis":  func() kittest.Store { return kittest.NewRedis(kittest.Redis.Client(b)) },
	} {
		b.Run(name, func(b *testing.B) {
			var h *hold.Holds
			open().Start(b, kittest.With(func(host *extension.Host) (_ extension.Extension, err error) {
				h, err = hold.New(host, hold.Options{})
				if err != nil {
					return extension.Extension{}, err
				}
				e := h.Extension()
				e.Run = nil // a round would count the places every second
				return e, nil
			}))
			benchResource(b, h)
		})
	}
}

func benchResource(b *testing.B, h *hold.Holds) {
	take := func(user int) (*hold.Hold, error) {
		return h.Hold(b.Context(), show, hold.TakeRequest{User: fmt.Sprint("u", user), Count: 1})
	}
	must := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	_, err := h.Put(b.Context(), show, hold.PutRequest{Resource: hold.Resource{Capacity: hold.MaxCapacity}})
	must(err)
	for i := range hold.MaxCapacity - 1 {
		_, err := take(i)
		must(err)
	}
	b.Run("take+release", func(b *testing.B) {
		for user := hold.MaxCapacity; b.Loop(); user++ {
			made, err := take(user)
			must(err)
			_, err = h.Release(b.Context(), hold.Change{Resource: show, ID: made.ID})
			must(err)
		}
	})
	_, err = take(-1)
	must(err)
	b.Run("full", func(b *testing.B) {
		for b.Loop() {
			if _, err := take(-2); codeOf(err) != wire.Full {
				b.Fatal(err)
			}
		}
	})
}
