package events

import "github.com/prometheus/client_golang/prometheus"

type metrics struct{ checked, created, sent, deadLettered, failed prometheus.Counter }

func (m *metrics) register(r prometheus.Registerer) error {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "switchboard_events_" + name + "_total", Help: help})
	}
	m.checked = counter("checked", "Users, channels and messages checked.")
	m.created = counter("told", "Events created.")
	m.sent = counter("sent", "Events accepted by the endpoint.")
	m.deadLettered = counter("dead", "Events moved to the dead letters.")
	m.failed = counter("failed", "Failed attempts to send.")
	if r == nil {
		return nil
	}
	for _, c := range []prometheus.Collector{m.checked, m.created, m.sent, m.deadLettered, m.failed} {
		if err := r.Register(c); err != nil {
			return err
		}
	}
	return nil
}

// count adds a round to the metrics, and logs events that were moved to the dead letters.
func (d *Dispatcher) count(r Report) {
	if r.DeadLettered > 0 {
		d.opts.Logger.Error().Int("events", r.DeadLettered).
			Msg("events were moved to the dead letters; janitor --dead-letters prints them")
	}
	m := &d.metrics
	m.checked.Add(float64(r.Checked))
	m.created.Add(float64(r.Created))
	m.sent.Add(float64(r.Sent))
	m.deadLettered.Add(float64(r.DeadLettered))
	m.failed.Add(float64(r.Failed))
}
