package broker

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"switchboard/broker/hook"
	"switchboard/internal/certfile"
	"switchboard/internal/latency"
)

// metrics are the counters and histograms of /metrics.
type metrics struct {
	pushes    *prometheus.CounterVec
	accepted  map[string]prometheus.Counter // the counters of pushes with code ok, by kind
	stored    *prometheus.HistogramVec
	storedBy  map[string]prometheus.Observer // by kind
	delivered prometheus.Counter
	gaps      prometheus.Counter
	closes    *prometheus.CounterVec
	drainLag  prometheus.Histogram
	hints     *prometheus.CounterVec
	sweeps    prometheus.Counter
	rebinds   prometheus.Counter
	losses    prometheus.Counter

	unremembered prometheus.Counter

	refusals *prometheus.CounterVec
	tokens   *prometheus.CounterVec
	fetches  *prometheus.CounterVec
	hooks    *prometheus.CounterVec

	// Of the latest observations of stored and drainLag. tickLoop takes the samples.
	recentAppends, recentDrains *latency.Window
}

// newMetrics registers all metrics, those of the Go runtime and the process too.
func newMetrics(r prometheus.Registerer, b *Broker) *metrics {
	auto := promauto.With(r)
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	registerGauges(auto, b)
	registerKeyGauges(auto, b.opts)
	r.MustRegister(onlineCollector{b})
	counter := func(name, help string) prometheus.Counter {
		return auto.NewCounter(prometheus.CounterOpts{Name: "switchboard_" + name, Help: help})
	}
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		return auto.NewCounterVec(prometheus.CounterOpts{Name: "switchboard_" + name, Help: help}, labels)
	}
	m := &metrics{
		accepted: make(map[string]prometheus.Counter),
		storedBy: make(map[string]prometheus.Observer),
		pushes:   counters("pushes_total", "Pushes by kind of target and outcome.", "kind", "code"),
		stored: auto.NewHistogramVec(
			latency.Histogram("switchboard_store_append_seconds", "Time to store a message.", 0.0001, 10), []string{"kind"}),
		delivered: counter("deliveries_total", "Messages written to sockets."),
		gaps:      counter("gaps_total", "Gaps reported to clients."),
		closes:    counters("closes_total", "Ended connections by reason.", "reason"),
		drainLag: auto.NewHistogram(latency.Histogram("switchboard_drain_lag_seconds",
			"Time from a channel becoming dirty until its missed messages are read.", 0.0001, 10)),
		hints:        counters("hints_total", "Hints between instances: sent, missed (could not be sent) and received.", "what"),
		sweeps:       counter("sweeps_total", "Times that everything was compared with the store because hints may have been lost."),
		rebinds:      counter("rebinds_total", "Times that bindings were compared with the store because a failure may have lost them."),
		losses:       counter("store_losses_total", "Queues whose acknowledged messages the store has lost; their receivers are notified."),
		unremembered: counter("store_unremembered_total", "Acknowledged messages that are not looked for after a failover, because too many queues had messages in the last minute."),
		refusals:     counters("refusals_total", "Refusals by action on a channel or by limit.", "what"),
		tokens: counters("tokens_total", "Client tokens by outcome: ok, expired, bad, and unready while the keys cannot be fetched.",
			"outcome"),
		hooks: counters("hooks_total", "Hook calls and client requests to the backend by outcome: allowed or answered, denied, and late, failed or malformed, which clients see as unavailable or timeout.",
			"hook", "outcome"),
		fetches: counters("token_key_fetches_total", "Fetches of the token keys by outcome: ok and failed.", "outcome"),
	}
	for _, kind := range []string{"channel", "user", "client", "all"} {
		m.accepted[kind] = m.pushes.WithLabelValues(kind, "ok")
	}
	var appends []prometheus.Metric
	for _, kind := range storedKinds {
		m.storedBy[kind] = m.stored.WithLabelValues(kind)
		appends = append(appends, m.storedBy[kind].(prometheus.Metric))
	}
	m.recentAppends, m.recentDrains = latency.NewWindow(appends...), latency.NewWindow(m.drainLag)
	return m
}

// tick remembers the latencies of the last seconds; call it once a second.
func (m *metrics) tick() {
	m.recentAppends.Sample()
	m.recentDrains.Sample()
}

// registerGauges registers the gauges that read the state of the broker.
func registerGauges(auto promauto.Factory, b *Broker) {
	gauge := func(name, help string, value func() float64) {
		auto.NewGaugeFunc(prometheus.GaugeOpts{Name: "switchboard_" + name, Help: help}, value)
	}
	gauge("connections", "Client connections, before and after connect.", func() float64 { n, _ := b.sessions.Counts(); return float64(n) })
	gauge("users", "Users with a connection here.", func() float64 { _, n := b.sessions.Counts(); return float64(n) })
	gauge("channels", "Channels with subscribers here.", func() float64 { return float64(b.hub.ChannelCount()) })
	gauge("jobs_queued", "Store calls that wait for a worker.", func() float64 { return float64(b.pool.Queued() + b.durablePool.Queued()) })
	gauge("ready", "1 when the store answers and the lease is held.", func() float64 {
		if b.ready.Quick().Step == "" {
			return 1
		}
		return 0
	})
}

// registerKeyGauges registers the gauges of fetched token keys and of certificates.
func registerKeyGauges(auto promauto.Factory, o Options) {
	if remote := o.Access.Tokens.Remote(); remote != nil {
		auto.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "switchboard_token_keys", Help: "Number of fetched token keys.",
		}, func() float64 { n, _ := remote.Keys(); return float64(n) })
		auto.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "switchboard_token_keys_age_seconds", Help: "Time since the token keys were fetched; 0 if they never were.",
		}, func() float64 { _, age := remote.Keys(); return age.Seconds() })
	}
	for port, files := range map[string]*certfile.Files{"http": o.Listen.TLS, "peer": o.Links.TLS} {
		if files != nil {
			auto.NewGaugeFunc(prometheus.GaugeOpts{
				Name: "switchboard_certificate_not_after_seconds", Help: "Expiry of the certificate in use, in Unix time.",
				ConstLabels: prometheus.Labels{"port": port},
			}, func() float64 { return float64(files.NotAfter().Unix()) })
		}
	}
}

// storedKinds are the kinds of queues.
var storedKinds = []string{"channel", "client"}

// push counts a push. The counters of accepted pushes are looked up once, in newMetrics.
func (m *metrics) push(kind, code string) {
	if c := m.accepted[kind]; c != nil && code == "ok" {
		c.Inc()
		return
	}
	m.pushes.WithLabelValues(kind, code).Inc()
}

// store observes the time of one append to a queue. kind is one of storedKinds.
func (m *metrics) store(kind string, d time.Duration) { m.storedBy[kind].Observe(d.Seconds()) }

func (m *metrics) token(outcome string) { m.tokens.WithLabelValues(outcome).Inc() }

func (m *metrics) hook(kind hook.Kind, outcome hook.Outcome) {
	m.hooks.WithLabelValues(string(kind), string(outcome)).Inc()
}

func (m *metrics) refused(what string) { m.refusals.WithLabelValues(what).Inc() }

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
