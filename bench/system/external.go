package system

import (
	"context"
)

// External is a broker without authorization that this program does not start or stop.
type External struct {
	HTTP, TCP string // host:port
	Pprof     string // host:port of its pprof listener; "" for none
	PID       int
}

// Start waits until the broker is ready.
func (e *External) Start(ctx context.Context, s Setup) (Running, error) {
	in := &instance{http: e.HTTP, tcp: e.TCP, pprof: e.Pprof, pid: e.PID}
	if err := in.awaitReady(ctx); err != nil {
		return nil, err
	}
	r := &switchboard{Switchboard: &Switchboard{}, instances: []*instance{in}, transport: s.Transport}
	return external{r}, nil
}

// external is a broker that outlives the measurement.
type external struct{ *switchboard }

// Kill implements [Killable].
func (external) Kill() {}

// Stop implements [Running].
func (external) Stop() error { return nil }
