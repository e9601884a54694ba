package extension

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"switchboard/broker/api"
	"switchboard/broker/limit"
	"switchboard/broker/namespace"
	"switchboard/broker/session"
	"switchboard/internal/wire"
)

// Set is the extensions of a broker. It does not change after New.
type Set struct {
	// Stored returns how much a user has stored, apart from the objects of extensions. It is set
	// before the first call.
	Stored func(ctx context.Context, user string) (limit.StoredUse, error)

	list []Extension
}

// New makes the extensions, in this order.
func New(opts HostOptions, create []func(*Host) (Extension, error), metrics prometheus.Registerer) (*Set, error) {
	s := new(Set)
	host := &Host{opts, s}
	methods := map[string]string{} // the extension of each method
	for _, create := range create {
		e, err := create(host)
		if err != nil {
			return nil, err
		}
		for name := range e.Methods {
			if other, found := methods[name]; found {
				return nil, fmt.Errorf("%s: %s has the method %s too", e.Name, other, name)
			}
			if err := wire.CheckMethod(name); err != nil {
				return nil, fmt.Errorf("%s: %w", e.Name, err)
			}
			methods[name] = e.Name
		}
		for _, c := range e.Metrics {
			if err := metrics.Register(c); err != nil {
				return nil, fmt.Errorf("%s: %w", e.Name, err)
			}
		}
		s.list = append(s.list, e)
	}
	return s, nil
}

// Names returns the names of the extensions.
func (s *Set) Names() []string {
	names := make([]string, len(s.list)) // not nil: JSON shows []
	for i, e := range s.list {
		names[i] = e.Name
	}
	return names
}

// Rules returns the namespaces of the extensions' channels.
func (s *Set) Rules() (rules []namespace.Rule) {
	for _, e := range s.list {
		for _, k := range e.Channels {
			rules = append(rules, k.Rule)
		}
	}
	return rules
}

// Methods returns the request methods of all extensions.
func (s *Set) Methods() map[string]session.Method {
	all := map[string]session.Method{}
	for _, e := range s.list {
		maps.Copy(all, e.Methods)
	}
	return all
}

// ClientCall returns the client call with a name, or nil.
func (s *Set) ClientCall(name string) session.Method {
	for _, e := range s.list {
		if m := e.ClientCalls[name]; m != nil {
			return m
		}
	}
	return nil
}

// Calls returns the HTTP calls of all extensions, and those about what users own.
func (s *Set) Calls() (all []api.Call) {
	for _, e := range s.list {
		all = append(all, e.Calls...)
	}
	return append(all, s.ownedCalls()...)
}

// Authorizer returns the function that returns the Authorizer of a channel, nil for none.
func (s *Set) Authorizer() func(channel string) session.Authorizer {
	type kind struct {
		prefix    string
		authorize session.Authorizer
	}
	var list []kind
	for _, e := range s.list {
		for _, k := range e.Channels {
			if k.Authorize != nil {
				list = append(list, kind{strings.TrimSuffix(k.Rule.Name, "*"), k.Authorize})
			}
		}
	}
	if len(list) == 0 {
		return nil
	}
	return func(channel string) session.Authorizer {
		i := slices.IndexFunc(list, func(k kind) bool { return strings.HasPrefix(channel, k.prefix) })
		if i < 0 {
			return nil
		}
		return list[i].authorize
	}
}

// Run runs the extensions until ctx ends.
func (s *Set) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, e := range s.list {
		if e.Run == nil {
			continue
		}
		group.Go(func() error {
			if err := e.Run(ctx); err != nil && ctx.Err() == nil {
				return fmt.Errorf("%s: %w", e.Name, err)
			}
			return nil
		})
	}
	return group.Wait()
}
