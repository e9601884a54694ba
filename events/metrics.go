package events

import "github.com/prometheus/client_golang/prometheus"

type metrics struct{ checked, told, sent, dead, failed prometheus.Counter }

func (m *metrics) register(r prometheus.Registerer) error {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "switchboard_events_" + name + "_total", Help: help})
	}
	m.checked = counter("checked", "Users, channels and messages that were looked at.")
	m.told = counter("told", "Events made.")
	m.sent = counter("sent", "Events that the endpoint has taken.")
	m.dead = counter("dead", "Events that were given up.")
	m.failed = counter("failed", "Attempts to send that failed.")
	if r == nil {
		return nil
	}
	for _, c := range []prometheus.Collector{m.checked, m.told, m.sent, m.dead, m.failed} {
		if err := r.Register(c); err != nil {
			return err
		}
	}
	return nil
}

// count keeps account of a round, and complains of events that were given up.
func (d *Dispatcher) count(did Report) {
	if did.Dead > 0 {
		d.opts.Logger.Error().Int("events", did.Dead).Msg("events were given up; janitor --dead-letters shows them")
	}
	m := &d.metrics
	m.checked.Add(float64(did.Checked))
	m.told.Add(float64(did.Told))
	m.sent.Add(float64(did.Sent))
	m.dead.Add(float64(did.Dead))
	m.failed.Add(float64(did.Failed))
}
