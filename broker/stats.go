package broker

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/procfs"

	"switchboard/broker/api"
	"switchboard/internal/latency"
)

// self implements api.Options.Self.
func (b *Broker) self() api.Self {
	return api.Self{
		Server: b.ID(), Version: b.opts.Version, StartedAt: b.member.Started().UnixMilli(),
		Webhooks: b.opts.Store.Webhooks != nil,
		Open:     b.opts.Access.Keys.Open(), Tokens: !b.opts.Access.Tokens.Open(), Redis: b.opts.Store.Shared, Kit: b.extensions.Names(),
	}
}

// stats returns the numbers of this server.
func (b *Broker) stats() api.Stats {
	connections, users := b.sessions.Counts()
	s := api.Stats{
		Server: b.ID(), At: time.Now().UnixMilli(), StartedAt: b.member.Started().UnixMilli(),
		Connections: connections, Users: users,
		Channels: b.hub.ChannelCount(), Subscriptions: int(b.hub.SubscriptionCount()),
		Delivered: int64(counterValue(b.metrics.delivered)),
		Append:    latencyOf(b.metrics.recentAppends), Drain: latencyOf(b.metrics.recentDrains),
		RSS: residentMemory(), MaxConnections: b.opts.Limits.Connections, CertificateEnds: b.certificateEnds(),
	}
	s.Accepted, s.Closed = b.sessions.Accepted()
	s.Pushes, s.PushErrors = b.metrics.pushCounts()
	return s
}

// latencyOf returns the quantiles of a window.
func latencyOf(w *latency.Window) api.Latency {
	quantiles, count := w.Quantiles(0.5, 0.99)
	l := api.Latency{Count: int64(count)}
	if quantiles != nil {
		l.P50, l.P99 = &quantiles[0], &quantiles[1]
	}
	return l
}

// pushCounts returns how many targets of pushes were accepted and refused.
func (m *metrics) pushCounts() (accepted, refused int64) {
	all := make(chan prometheus.Metric)
	go func() {
		defer close(all)
		m.pushes.Collect(all)
	}()
	total := 0.0
	for c := range all {
		total += counterValue(c)
	}
	for _, c := range m.accepted {
		accepted += int64(counterValue(c))
	}
	return accepted, max(int64(total)-accepted, 0) // accepted may have grown meanwhile
}

// counterValue returns the value of a counter.
func counterValue(c prometheus.Metric) float64 {
	var m dto.Metric
	_ = c.Write(&m) // it fails only for metrics with invalid labels
	return m.GetCounter().GetValue()
}

// residentMemory returns the resident memory of this process in bytes, or 0 if the system does not
// say.
func residentMemory() int64 {
	self, err := procfs.Self()
	if err != nil {
		return 0
	}
	stat, err := self.Stat()
	if err != nil {
		return 0
	}
	return int64(stat.ResidentMemory())
}
