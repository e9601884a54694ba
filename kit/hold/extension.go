package hold

import (
	"github.com/prometheus/client_golang/prometheus"

	"switchboard/broker"
	"switchboard/broker/namespace"
)

// Extension returns a function for broker.Options.Extensions.
func Extension(opts Options) func(*broker.Host) (broker.Extension, error) {
	return func(host *broker.Host) (broker.Extension, error) {
		h, err := New(host, opts)
		if err != nil {
			return broker.Extension{}, err
		}
		return h.Extension(), nil
	}
}

// Extension returns the extension of a broker: methods, calls and the channels of resources.
func (h *Holds) Extension() broker.Extension {
	return broker.Extension{
		Name: "holds", Methods: h.methods(), Calls: h.calls(),
		Channels: []broker.ChannelKind{{Rule: namespace.Rule{
			Name: channelPrefix + "*", Subscribe: *h.opts.Read, State: *h.opts.Read,
			// A write from outside must not shorten the life of a resource.
			StateKeep: namespace.KeepForever, FieldsGone: true,
		}}},
		Run:     h.Run,
		Metrics: []prometheus.Collector{h.results, h.newCollector()},
	}
}
