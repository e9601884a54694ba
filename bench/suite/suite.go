package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"switchboard/bench/progress"
	"switchboard/bench/report"
	"switchboard/bench/system"
)

// suite is one run over all.
type suite struct {
	scenarios  []scenario
	contenders map[string]contender
	rounds     int
	quick      bool
	stall      time.Duration // without anything new for so long, a measurement fails. Zero means 10 s
	progress   *progress.Line

	absent  map[string]string // by system: why it cannot be had
	rate    float64           // of the open loop, once known
	results map[key][]float64
	order   []key // of results
	invalid []string
	stolen  []float64 // percent of the processors, by round
	begun   time.Time
	done    int // measurements
}

// key names one row.
type key struct {
	scenario, system, metric string
	x                        float64
}

// step is one measurement of a round.
type step struct {
	scenario  *scenario
	contender contender
	x         int
}

// steps are those of a round. Each round another system is the first of its scenario.
func (s *suite) steps(round int) (all []step) {
	for i := range s.scenarios {
		sc := &s.scenarios[i]
		xs, systems := sc.xs, sc.systems
		if s.quick {
			xs = sc.quickXs
			if sc.quickly != nil {
				systems = sc.quickly
			}
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
				if ok {
					all = append(all, step{sc, c, x})
				}
			}
		}
	}
	return all
}

// run goes round after round over all scenarios, and in each scenario over all systems, so that what else the machine does
// at some time hits all of them.
func (s *suite) run(ctx context.Context) error {
	s.begun, s.absent, s.results = time.Now(), map[string]string{}, map[key][]float64{}
	for round := range s.rounds {
		steps, before := s.steps(round), processors()
		for _, st := range steps {
			s.done++
			if _, ok := s.absent[st.contender.name]; ok {
				continue
			}
			if err := s.step(ctx, st, round, s.rounds*len(steps)); err != nil {
				return err
			}
		}
		s.stolen = append(s.stolen, processors().stolenSince(before))
	}
	return nil
}

// step is one measurement. Only an interrupt is an error; what else goes wrong is told in the report.
func (s *suite) step(ctx context.Context, st step, round, steps int) error {
	t := &trial{
		scenario: st.scenario, contender: st.contender, size: st.scenario.size, x: st.x, rate: s.openRate(),
		progress: s.progress, stall: s.stall, begun: s.begun, histogram: newHistogram(),
	}
	if s.quick {
		t.size = st.scenario.quick
	}
	if st.scenario.id == "beat" {
		t.size.connections = st.x
	}
	t.rate = cmp.Or(t.size.rate, t.rate)
	t.size.connections = min(t.size.connections, cmp.Or(st.contender.most, t.size.connections))
	t.size.channels = min(t.size.channels, t.size.connections)
	name := fmt.Sprintf("%s, %s", st.scenario.id, st.contender.name)
	if st.x != 0 {
		name = fmt.Sprintf("%s at %d", name, st.x)
	}
	t.label = fmt.Sprintf("round %d of %d, step %d of %d: %s", round+1, s.rounds, s.done, steps, name)
	switch err := t.run(ctx); {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, errAbsent):
		s.absent[st.contender.name] = err.Error()
		s.invalid = append(s.invalid, fmt.Sprintf("%s: %v", st.contender.name, err))
	case err != nil:
		s.invalid = append(s.invalid, fmt.Sprintf("%s, round %d: %v", name, round+1, err))
	default:
		s.keep(t)
	}
	return nil
}

// keep enters the figures of a measurement that counts.
func (s *suite) keep(t *trial) {
	for _, f := range t.figures {
		k := key{f.scenario, t.contender.name, f.metric, f.x}
		if s.results[k] == nil {
			s.order = append(s.order, k)
		}
		s.results[k] = append(s.results[k], f.value)
	}
}

// fallbackRate is that of the open loop without a centrifuge to take half of.
const fallbackRate = 5_000

// openRate is half of what centrifuge did in the first round, in hundreds, and the same from then on.
func (s *suite) openRate() float64 {
	single := s.results[key{"single-10k", "centrifuge", "pushes_per_s", 0}]
	if s.rate == 0 && len(single) > 0 {
		s.rate = float64(int(single[0]/2/100) * 100)
	}
	return cmp.Or(s.rate, fallbackRate)
}

// report is the outcome.
func (s *suite) report() report.Run {
	r := report.Run{
		Date: s.begun.UTC().Format(time.RFC3339), Took: time.Since(s.begun), Rounds: s.rounds, Quick: s.quick, Invalid: s.invalid, Stolen: s.stolen,
		Versions: map[string]string{}, Notes: map[string]string{},
	}
	describe(&r)
	for _, k := range s.order {
		r.Results = append(r.Results, report.Result{
			Scenario: k.scenario, System: k.system, Metric: k.metric, X: k.x, Values: slices.Clone(s.results[k]),
		})
		if v, ok := s.contenders[k.system].system.(interface{ Version() string }); ok {
			r.Versions[k.system] = v.Version()
		}
		if v, ok := s.contenders[k.system].system.(interface{ Notes() string }); ok {
			r.Notes[k.system] = v.Notes()
		}
	}
	return r
}

// build makes the broker, and who takes part.
func (s *suite) build(ctx context.Context, dir string) error {
	s.progress.Stage("building the broker")
	broker, err := system.BuildBroker(ctx, dir)
	s.contenders = contenders(broker)
	return err
}
