package broker

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"switchboard/internal/certfile"
	"switchboard/internal/latency"
)

// metrics is what /metrics tells.
type metrics struct {
	pushes    *prometheus.CounterVec
	accepted  map[string]prometheus.Counter // of pushes, by kind
	stored    *prometheus.HistogramVec
	storedBy  map[string]prometheus.Observer // by kind
	delivered prometheus.Counter
	gaps      prometheus.Counter
	closes    *prometheus.CounterVec
	drainLag  prometheus.Histogram
	hints     *prometheus.CounterVec
	sweeps    prometheus.Counter
	losses    prometheus.Counter
	refusals  *prometheus.CounterVec
	tokens    *prometheus.CounterVec
	fetches   *prometheus.CounterVec
	hooks     *prometheus.CounterVec
}

func newMetrics(r prometheus.Registerer, b *Broker) *metrics {
	auto := promauto.With(r)
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	auto.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "switchboard_connections", Help: "Client connections, connected or not yet.",
	}, func() float64 { n, _ := b.sessions.Counts(); return float64(n) })
	auto.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "switchboard_users", Help: "Users with a connection here.",
	}, func() float64 { _, n := b.sessions.Counts(); return float64(n) })
	auto.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "switchboard_channels", Help: "Channels with subscribers here.",
	}, func() float64 { return float64(b.hub.ChannelCount()) })
	auto.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "switchboard_jobs_queued", Help: "Store calls that wait for a worker.",
	}, func() float64 { return float64(b.pool.Queued()) })
	auto.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "switchboard_ready", Help: "1 when the store answers and the lease is held.",
	}, func() float64 {
		if b.notReady().step == "" {
			return 1
		}
		return 0
	})
	if remote := b.opts.Tokens.Remote(); remote != nil {
		auto.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "switchboard_token_keys", Help: "Fetched keys for tokens that are known.",
		}, func() float64 { n, _ := remote.Keys(); return float64(n) })
		auto.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "switchboard_token_keys_age_seconds", Help: "Time since the keys for tokens were fetched; 0 when they never were.",
		}, func() float64 { _, age := remote.Keys(); return age.Seconds() })
	}
	for port, files := range map[string]*certfile.Files{"http": b.opts.TLS, "peer": b.opts.PeerTLS} {
		if files != nil {
			auto.NewGaugeFunc(prometheus.GaugeOpts{
				Name: "switchboard_certificate_not_after_seconds", Help: "When the certificate in use runs out, in Unix time.",
				ConstLabels: prometheus.Labels{"port": port},
			}, func() float64 { return float64(files.NotAfter().Unix()) })
		}
	}
	m := &metrics{
		accepted: make(map[string]prometheus.Counter), storedBy: make(map[string]prometheus.Observer),
		pushes: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "switchboard_pushes_total", Help: "Pushes by kind of target and outcome.",
		}, []string{"kind", "code"}),
		stored: auto.NewHistogramVec(
			latency.Histogram("switchboard_store_append_seconds", "Time to store a message.", 0.0001, 10), []string{"kind"}),
		delivered: auto.NewCounter(prometheus.CounterOpts{
			Name: "switchboard_deliveries_total", Help: "Messages written to sockets.",
		}),
		gaps: auto.NewCounter(prometheus.CounterOpts{
			Name: "switchboard_gaps_total", Help: "Gaps that clients were told of.",
		}),
		closes: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "switchboard_closes_total", Help: "Ended connections by reason.",
		}, []string{"reason"}),
		drainLag: auto.NewHistogram(latency.Histogram("switchboard_drain_lag_seconds",
			"From a channel becoming dirty until what it missed was read.", 0.0001, 10)),
		hints: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "switchboard_hints_total", Help: "Hints between instances: sent, missed (not sendable) and received.",
		}, []string{"what"}),
		sweeps: auto.NewCounter(prometheus.CounterOpts{
			Name: "switchboard_sweeps_total", Help: "Times that everything was read again because hints may have been lost.",
		}),
		losses: auto.NewCounter(prometheus.CounterOpts{
			Name: "switchboard_store_losses_total", Help: "Queues of which the store lost acknowledged messages; their receivers are told.",
		}),
		refusals: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "switchboard_refusals_total", Help: "What clients were not allowed to do on a channel, or more than the limits allow, by action or limit.",
		}, []string{"what"}),
		tokens: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "switchboard_tokens_total", Help: "Tokens of clients by outcome: ok, expired, bad, and unready while their keys cannot be fetched.",
		}, []string{"outcome"}),
		hooks: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "switchboard_hooks_total", Help: "Questions to the backend by outcome: allowed, denied, and late, failed and malformed, which are unavailable to the client.",
		}, []string{"hook", "outcome"}),
		fetches: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "switchboard_token_key_fetches_total", Help: "Times that the keys for tokens were fetched, by outcome: ok and failed.",
		}, []string{"outcome"}),
	}
	for _, kind := range []string{"channel", "user", "client", "all"} {
		m.accepted[kind] = m.pushes.WithLabelValues(kind, "ok")
	}
	for _, kind := range storedKinds {
		m.storedBy[kind] = m.stored.WithLabelValues(kind)
	}
	return m
}

// storedKinds are the kinds of queues.
var storedKinds = []string{"channel", "client"}

// push is called for each: the counters of those that are accepted were looked up before.
func (m *metrics) push(kind, code string) {
	if c := m.accepted[kind]; c != nil && code == "ok" {
		c.Inc()
		return
	}
	m.pushes.WithLabelValues(kind, code).Inc()
}

// store is called for each push, with one of storedKinds.
func (m *metrics) store(kind string, d time.Duration) { m.storedBy[kind].Observe(d.Seconds()) }
func (m *metrics) token(outcome string)               { m.tokens.WithLabelValues(outcome).Inc() }

func (m *metrics) fetched(ok bool) {
	outcome := "failed"
	if ok {
		outcome = "ok"
	}
	m.fetches.WithLabelValues(outcome).Inc()
}

func (m *metrics) hint(what string) func(int) {
	c := m.hints.WithLabelValues(what)
	return func(n int) { c.Add(float64(n)) }
}
