package janitor

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"switchboard/internal/latency"
)

// Kinds of rounds: the label "round" of the metrics and the field "round" in the log.
const (
	servers = "servers"
	queues  = "queues"
	states  = "states"
	due     = "due"
	send    = "send"
	sweep   = "sweep"
)

type metrics struct {
	rounds, errors *prometheus.CounterVec
	seconds        *prometheus.HistogramVec
	counts         map[string]prometheus.Counter // by the name of a count of the Report; a dry run does not change them
}

func (m *metrics) register(r prometheus.Registerer) error {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "switchboard_janitor_" + name, Help: help})
	}
	byRound := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "switchboard_janitor_" + name, Help: help}, []string{"round"})
	}
	m.rounds = byRound("rounds_total", "Rounds.")
	m.errors = byRound("errors_total", "Incomplete rounds.")
	m.seconds = prometheus.NewHistogramVec(
		latency.Histogram("switchboard_janitor_round_seconds", "Duration of rounds.", 0.001, 100), []string{"round"})
	m.counts = map[string]prometheus.Counter{
		"declared_dead": counter("servers_buried_total", "Servers declared dead."),
		"channels":      counter("channels_released_total", "Channels released from dead servers."),
		"clients":       counter("clients_released_total", "Clients released from dead servers."),
		"orphans":       counter("orphans_released_total", "Unknown servers removed from channels."),
		"trimmed":       counter("messages_trimmed_total", "Messages trimmed from channels."),
		"pruned":        counter("channels_pruned_total", "Channels without servers removed from the list."),
		"states":        counter("states_changed_total", "Changes of channel states: fields that ended, or whose owners have left."),
	}
	if r == nil {
		return nil
	}
	collectors := []prometheus.Collector{m.rounds, m.errors, m.seconds}
	for _, c := range m.counts {
		collectors = append(collectors, c)
	}
	for _, c := range collectors {
		if err := r.Register(c); err != nil {
			return err
		}
	}
	return nil
}

// measured runs a round and updates the metrics.
func (j *Janitor) measured(kind string, round func(counts *counters) error) (Report, error) {
	start := time.Now()
	var counts counters
	err := round(&counts)
	j.progress.ended(kind, time.Since(start), err)
	report := counts.report
	report.DryRun = j.opts.DryRun

	m := &j.metrics
	m.rounds.WithLabelValues(kind).Inc()
	m.seconds.WithLabelValues(kind).Observe(time.Since(start).Seconds())
	if err != nil {
		m.errors.WithLabelValues(kind).Inc()
	}
	if !j.opts.DryRun {
		for _, c := range report.counts() {
			if counter := m.counts[c.name]; counter != nil {
				counter.Add(float64(*c.n))
			}
		}
	}
	return report, err
}
