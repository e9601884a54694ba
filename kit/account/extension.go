package account

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"switchboard/broker/extension"
	"switchboard/broker/namespace"
)

// Extension returns accounts as a part of the broker.
func (a *Accounts) Extension() extension.Extension {
	return extension.Extension{
		Name: "accounts", Calls: slices.Concat(a.publicCalls(), a.backendCalls()), Run: a.Run,
		Metrics: []prometheus.Collector{a.results, a.newCollector()},
		Channels: []extension.ChannelKind{
			closed(accountPrefix, namespace.KeepForever), closed(namePrefix, namespace.KeepForever),
		},
	}
}

// maxLogged is the most messages that a channel keeps. They are of no use.
const maxLogged = 1

// closed returns channels that no client may use.
func closed(prefix string, keep time.Duration) extension.ChannelKind {
	return extension.ChannelKind{Rule: namespace.Rule{
		Name: prefix + "*", NoPresence: true, HistoryMessages: maxLogged, StateKeep: keep,
	}}
}
