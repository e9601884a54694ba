package session

import (
	"cmp"
	"context"
	"slices"
	"strings"
)

const (
	// maxUnsure bounds the binds that broke off and are remembered.
	maxUnsure = 1 << 12
	// mostCleared is how many of them one tick looks at: after an outage, others need the store too.
	mostCleared = 64
)

// attempt is a bind: server is this one's id at the time.
type attempt struct{ client, server string }

func (a attempt) compare(b attempt) int {
	return cmp.Or(strings.Compare(a.client, b.client), strings.Compare(a.server, b.server))
}

// doubt notes that a call to bind the client failed: it may have been executed all the same, and nobody
// here holds what it bound.
func (m *Manager) doubt(client, server string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.unsure) < maxUnsure {
		m.unsure[attempt{client, server}] = struct{}{}
	}
}

// clearSome has the pool look at what is in doubt; what fails is in doubt again.
func (m *Manager) clearSome() {
	m.mu.Lock()
	var some []attempt
	for a := range m.unsure {
		if len(some) == mostCleared {
			break
		}
		some = append(some, a)
		delete(m.unsure, a)
	}
	m.mu.Unlock()
	slices.SortFunc(some, attempt.compare) // a simulation that runs again meets them in the same order
	for _, a := range some {
		m.opts.Pool.Go(func() {
			ctx, cancel := m.context()
			defer cancel()
			if err := m.clear(ctx, a); err != nil {
				m.opts.Logger.Warn().Err(err).Msg("a bind that broke off is not cleared; a later tick tries again")
				m.doubt(a.client, a.server)
			}
		})
	}
}

// clear takes back what a bind that broke off has left: the binding, if no session here has it, or the
// note in s_c_. And it tells whoever lost the client to that binding: his name was in the answer that did not come.
func (m *Manager) clear(ctx context.Context, a attempt) error {
	left, last, err := m.leftover(ctx, a)
	if err != nil {
		return err
	}
	if last > 0 {
		m.Supersede(a.client, last)
		m.opts.Notify.Superseded("", a.client, last)
	}
	if left.generation == 0 {
		return nil
	}
	return m.unbind(ctx, left)
}

// leftover is the binding that an attempt made and no session has, or none, and the generation of the client's last one.
func (m *Manager) leftover(ctx context.Context, a attempt) (left binding, last int64, err error) {
	defer m.turns.take(a.client)() // no other bind of the client is under way
	c, known, err := m.opts.Queue.Client(ctx, a.client)
	switch {
	case err != nil:
		return binding{}, 0, err
	case !known || c.Server != a.server:
		err = m.opts.Registry.DropClient(ctx, a.server, a.client)
	case !m.has(a.client, c.Generation):
		left = binding{client: a.client, generation: c.Generation}
	}
	return left, c.Generation, err
}
