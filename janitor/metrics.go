package janitor

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"switchboard/internal/latency"
)

// The kinds of rounds: the label of the metrics and the word in the log.
const (
	servers = "servers"
	queues  = "queues"
	due     = "due"
	send    = "send"
	sweep   = "sweep"
)

type metrics struct {
	rounds, errors *prometheus.CounterVec
	seconds        *prometheus.HistogramVec
	// What was done; a dry run does nothing.
	buried, channels, clients, orphans, trimmed, pruned prometheus.Counter
}

func (m *metrics) register(r prometheus.Registerer) error {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "switchboard_janitor_" + name, Help: help})
	}
	byRound := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "switchboard_janitor_" + name, Help: help}, []string{"round"})
	}
	m.rounds = byRound("rounds_total", "Rounds made.")
	m.errors = byRound("errors_total", "Rounds that were not complete.")
	m.seconds = prometheus.NewHistogramVec(
		latency.Histogram("switchboard_janitor_round_seconds", "How long rounds take.", 0.001, 100), []string{"round"})
	m.buried = counter("servers_buried_total", "Servers declared dead.")
	m.channels = counter("channels_released_total", "Channels released from dead servers.")
	m.clients = counter("clients_released_total", "Clients released from dead servers.")
	m.orphans = counter("orphans_released_total", "Unknown servers taken out of channels.")
	m.trimmed = counter("messages_trimmed_total", "Messages trimmed from channels.")
	m.pruned = counter("channels_pruned_total", "Channels without servers taken out of the list.")
	if r == nil {
		return nil
	}
	for _, c := range []prometheus.Collector{
		m.rounds, m.errors, m.seconds, m.buried, m.channels, m.clients, m.orphans, m.trimmed, m.pruned,
	} {
		if err := r.Register(c); err != nil {
			return err
		}
	}
	return nil
}

// measured runs a round and counts what it did.
func (j *Janitor) measured(kind string, round func(did *tally) error) (Report, error) {
	start := time.Now()
	var done tally
	err := round(&done)
	did := done.report(j.opts.DryRun)

	m := &j.metrics
	m.rounds.WithLabelValues(kind).Inc()
	m.seconds.WithLabelValues(kind).Observe(time.Since(start).Seconds())
	if err != nil {
		m.errors.WithLabelValues(kind).Inc()
	}
	if !j.opts.DryRun {
		m.buried.Add(float64(did.Buried))
		m.channels.Add(float64(did.Channels))
		m.clients.Add(float64(did.Clients))
		m.orphans.Add(float64(did.Orphans))
		m.trimmed.Add(float64(did.Trimmed))
		m.pruned.Add(float64(did.Pruned))
	}
	return did, err
}
