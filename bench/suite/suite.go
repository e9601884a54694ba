package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"switchboard/bench/progress"
	"switchboard/bench/report"
	"switchboard/bench/system"
)

// suite is one run over all scenarios.
type suite struct {
	scenarios  []scenario
	contenders map[string]contender
	rounds     int
	quick      bool
	broker     string         // path of the program; empty means that it is built
	load       size           // what is not 0 replaces the size of each scenario
	systems    *regexp.Regexp // of the contenders to measure; nil means all
	external   *contender     // the only contender, nil for none
	stall      time.Duration  // a measurement fails after this time without a message. Zero means 10 s
	progress   *progress.Line

	unavailable  map[string]string       // reasons by system
	rate         float64                 // of the open loop; 0 until known
	results      map[resultKey][]float64 // one value per round
	order        []resultKey             // of results
	invalid      []string
	steal        []float64 // CPU steal by round, in percent
	started      time.Time
	stepsStarted int // number of measurements that have started
}

// resultKey identifies the values of one metric of one system.
type resultKey struct {
	scenario, system, metric string
	x                        float64
}

// step is one measurement of a round.
type step struct {
	scenario  *scenario
	contender contender
	x         int
}

// steps returns the measurements of a round. The order of the systems rotates by one per round.
func (s *suite) steps(round int) (all []step) {
	for i := range s.scenarios {
		sc := &s.scenarios[i]
		xs, systems := sc.xs, sc.systems
		if s.quick {
			xs = sc.quickXs
			if sc.quickSystems != nil {
				systems = sc.quickSystems
			}
		}
		if s.external != nil {
			systems = []string{s.external.name}
		}
		if s.quick && sc.quick == (size{}) {
			continue
		}
		if len(xs) == 0 {
			xs = []int{0}
		}
		for j := range systems {
			c, ok := s.contenders[systems[(j+round)%len(systems)]]
			for _, x := range xs {
				if ok && (s.systems == nil || s.systems.MatchString(c.name)) {
					all = append(all, step{sc, c, x})
				}
			}
		}
	}
	return all
}

// run measures all scenarios in each round, and in each scenario all systems, so that disturbances
// of the machine affect all systems.
func (s *suite) run(ctx context.Context) error {
	s.started, s.unavailable, s.results = time.Now(), map[string]string{}, map[resultKey][]float64{}
	for round := range s.rounds {
		steps, before := s.steps(round), readProcessorTime()
		for _, st := range steps {
			s.stepsStarted++
			if _, ok := s.unavailable[st.contender.name]; ok {
				continue
			}
			if err := s.step(ctx, st, round, s.rounds*len(steps)); err != nil {
				return err
			}
		}
		s.steal = append(s.steal, readProcessorTime().stealSince(before))
	}
	return nil
}

// step runs one measurement. It returns an error only if it is interrupted. Other errors go into
// the report.
func (s *suite) step(ctx context.Context, st step, round, steps int) error {
	t := &trial{
		scenario: st.scenario, contender: st.contender, size: st.scenario.size, x: st.x, rate: s.openLoopRate(),
		progress: s.progress, stall: s.stall, started: s.started, histogram: newHistogram(),
	}
	if s.quick {
		t.size = st.scenario.quick
	}
	if st.scenario.id == "beat" {
		t.size.connections = st.x
	}
	t.size.override(s.load)
	if st.contender.isFloor() {
		t.size.channels = 1
	}
	t.rate = cmp.Or(t.size.rate, t.rate)
	t.size.connections = min(t.size.connections, cmp.Or(st.contender.maxConnections, t.size.connections))
	t.size.channels = min(t.size.channels, t.size.connections)
	t.size.connections -= t.size.connections % t.size.channels // each channel has as many subscribers
	if t.size.channels > 1 {
		t.size.publishers = min(t.size.publishers, t.size.channels) // each channel has one publisher
	}
	name := fmt.Sprintf("%s, %s", st.scenario.id, st.contender.name)
	if st.x != 0 {
		name = fmt.Sprintf("%s at %d", name, st.x)
	}
	t.label = fmt.Sprintf("round %d of %d, step %d of %d: %s", round+1, s.rounds, s.stepsStarted, steps, name)
	switch err := t.run(ctx); {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, errUnavailable):
		s.unavailable[st.contender.name] = err.Error()
		s.invalid = append(s.invalid, fmt.Sprintf("%s: %v", st.contender.name, err))
	case err != nil:
		s.invalid = append(s.invalid, fmt.Sprintf("%s, round %d: %v", name, round+1, err))
	default:
		s.addResults(t)
	}
	return nil
}

// addResults adds the results of a measurement that counts.
func (s *suite) addResults(t *trial) {
	for _, res := range t.results {
		k := resultKey{res.scenario, t.contender.name, res.metric, res.x}
		if s.results[k] == nil {
			s.order = append(s.order, k)
		}
		s.results[k] = append(s.results[k], res.value)
	}
}

// defaultRate is the rate of the open loop if centrifuge was not measured.
const defaultRate = 5_000

// openLoopRate returns half the rate of centrifuge in the first round, rounded down to hundreds. It
// does not change afterwards.
func (s *suite) openLoopRate() float64 {
	single := s.results[resultKey{"single-10k", "centrifuge", "pushes_per_s", 0}]
	if s.rate == 0 && len(single) > 0 {
		s.rate = float64(int(single[0]/2/100) * 100)
	}
	return cmp.Or(s.rate, defaultRate)
}

// report returns the results.
func (s *suite) report() report.Run {
	r := report.Run{
		Date: s.started.UTC().Format(time.RFC3339), Took: time.Since(s.started), Rounds: s.rounds, Quick: s.quick, Invalid: s.invalid, Stolen: s.steal,
		Versions: map[string]string{}, Notes: map[string]string{},
	}
	describeRun(&r)
	for _, k := range s.order {
		r.Results = append(r.Results, report.Result{
			Scenario: k.scenario, System: k.system, Metric: k.metric, X: k.x, Values: slices.Clone(s.results[k]),
		})
		if v, ok := s.contenders[k.system].system.(interface{ Version() string }); ok {
			r.Versions[k.system] = v.Version()
		}
		if v, ok := s.contenders[k.system].system.(interface{ Notes() string }); ok && v.Notes() != "" {
			r.Notes[k.system] = v.Notes()
		}
	}
	return r
}

// build builds the broker and creates the contenders.
func (s *suite) build(ctx context.Context, dir string) error {
	if s.external != nil {
		s.contenders = map[string]contender{s.external.name: *s.external}
		return nil
	}
	broker, err := s.broker, error(nil)
	if broker == "" {
		s.progress.Stage("building the broker")
		broker, err = system.BuildBroker(ctx, dir)
	}
	s.contenders = contenders(broker, dir)
	return err
}
