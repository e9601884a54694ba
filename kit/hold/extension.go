package hold

import (
	"github.com/prometheus/client_golang/prometheus"

	"switchboard/broker/extension"
	"switchboard/broker/namespace"
)

// Extension returns a function for broker.Options.Extensions.
func Extension(opts Options) func(*extension.Host) (extension.Extension, error) {
	return func(host *extension.Host) (extension.Extension, error) {
		h, err := New(host, opts)
		if err != nil {
			return extension.Extension{}, err
		}
		return h.Extension(), nil
	}
}

// Extension returns the extension of a broker: methods, calls and the channels of resources.
func (h *Holds) Extension() extension.Extension {
	return extension.Extension{
		Name: "holds", Methods: h.methods(), Calls: h.calls(),
		Channels: []extension.ChannelKind{{Rule: namespace.Rule{
			Name: channelPrefix + "*", Subscribe: *h.opts.Read, State: *h.opts.Read,
			// A write from outside must not shorten the life of a resource.
			StateKeep: namespace.KeepForever, FieldsGone: true,
		}}},
		Run:     h.Run,
		Metrics: []prometheus.Collector{h.results, h.newCollector()},
	}
}
