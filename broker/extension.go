package broker

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"switchboard/broker/api"
	"switchboard/broker/namespace"
	"switchboard/broker/session"
	"switchboard/internal/wire"
)

// Extension is a system that stands on the broker and runs in its process, such as rooms. It adds
// request methods for clients, HTTP calls for backends, and channels of its own.
type Extension struct {
	// Name names the extension in errors and in the log.
	Name string
	// Methods answer the requests of clients, by the method of the request.
	Methods map[string]session.Method
	// ClientCalls are like Methods, but clients cannot call them: Host.CallAs does.
	ClientCalls map[string]session.Method
	// Calls are HTTP calls under /v1.
	Calls []api.Call
	// Channels are the channels of the extension. No namespace of AccessOptions may have them.
	Channels []ChannelKind
	// Run does the work that no call causes, until ctx ends. Nil means that there is none.
	Run func(ctx context.Context) error
	// Metrics are registered at Options.Registerer.
	Metrics []prometheus.Collector
	// Owned are the kinds of objects that users own in the store of the extension.
	Owned []Owned
}

// ChannelKind is all channels with a prefix.
type ChannelKind struct {
	// Rule is the namespace of the channels. Its name is a prefix and *, such as room:*.
	Rule namespace.Rule
	// Authorize decides whether a client that the rule allows may subscribe. Reads without a
	// subscription, of messages, fields or members, are then refused. Nil means that the rule decides.
	Authorize session.Authorizer
}

// newExtensions makes the extensions of the options.
func (b *Broker) newExtensions() error {
	host := &Host{b}
	methods := map[string]string{} // the extension of each method
	for _, create := range b.opts.Extensions {
		e, err := create(host)
		if err != nil {
			return err
		}
		for name := range e.Methods {
			if other, found := methods[name]; found {
				return fmt.Errorf("%s: %s has the method %s too", e.Name, other, name)
			}
			if err := wire.CheckMethod(name); err != nil {
				return fmt.Errorf("%s: %w", e.Name, err)
			}
			methods[name] = e.Name
		}
		for _, c := range e.Metrics {
			if err := b.opts.Registerer.Register(c); err != nil {
				return fmt.Errorf("%s: %w", e.Name, err)
			}
		}
		b.extensions = append(b.extensions, e)
	}
	return b.access.reserve(b.channelKinds())
}

// channelKinds returns the channels of all extensions.
func (b *Broker) channelKinds() (kinds []ChannelKind) {
	for _, e := range b.extensions {
		kinds = append(kinds, e.Channels...)
	}
	return kinds
}

// methods returns the request methods of all extensions.
func (b *Broker) methods() map[string]session.Method {
	all := map[string]session.Method{}
	for _, e := range b.extensions {
		maps.Copy(all, e.Methods)
	}
	return all
}

// clientCall returns the client call with a name, or nil.
func (b *Broker) clientCall(name string) session.Method {
	for _, e := range b.extensions {
		if m := e.ClientCalls[name]; m != nil {
			return m
		}
	}
	return nil
}

// calls returns the HTTP calls of all extensions.
func (b *Broker) calls() (all []api.Call) {
	for _, e := range b.extensions {
		all = append(all, e.Calls...)
	}
	return append(all, b.ownedCalls()...)
}

// Endpoints returns the calls of /v1, with those of the extensions.
func (b *Broker) Endpoints() []api.Endpoint { return api.Endpoints(b.calls()) }

// Methods returns the names of the request methods of all extensions, in order.
func (b *Broker) Methods() []string { return slices.Sorted(maps.Keys(b.methods())) }

// authorizer returns session.Options.Authorizer.
func (b *Broker) authorizer() func(channel string) session.Authorizer {
	type kind struct {
		prefix    string
		authorize session.Authorizer
	}
	var list []kind
	for _, k := range b.channelKinds() {
		if k.Authorize != nil {
			list = append(list, kind{strings.TrimSuffix(k.Rule.Name, "*"), k.Authorize})
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

// runExtensions runs the extensions until ctx ends.
func (b *Broker) runExtensions(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, e := range b.extensions {
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
