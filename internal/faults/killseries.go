package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// kill is one broker killed: the times from then on.
type kill struct {
	Answers time.Duration // until no other broker's answer had any of its clients
	Told    time.Duration // until all watchers at other brokers had been told that each has left
	Offline time.Duration // until they had been told that the user of these clients is offline
}

// killSeries is what came of a series.
type killSeries struct {
	Kills    int      `json:"kills"`
	AtOnce   int      `json:"at_once"`
	Clients  int      `json:"clients_of_each"`
	Beat     string   `json:"beat"`
	Lease    string   `json:"lease"`
	Janitor  string   `json:"janitor_every"`
	Seconds  float64  `json:"seconds"`
	Answers  spread   `json:"answers"`
	Told     spread   `json:"told"`
	Offline  spread   `json:"offline"`
	Events   int      `json:"events"`
	Twice    int      `json:"told_twice"`
	Red      []string `json:"red,omitempty"`
	Evidence evidence `json:"evidence,omitempty"`

	plan series
	logs string
	mu   sync.Mutex // guards all
	all  []kill
}

// spread is a time over all kills, in ms.
type spread struct {
	P50 int64 `json:"p50_ms"`
	Max int64 `json:"max_ms"`
}

func newKillSeries(plan series) *killSeries {
	return &killSeries{
		plan: plan, AtOnce: plan.victims, Clients: ghostCount,
		Beat: plan.times.Beat.String(), Lease: plan.times.lease().String(), Janitor: plan.times.servers().String(),
	}
}

func (k *killSeries) add(one kill) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all = append(k.all, one)
}

// conclude sums up when all has ended.
func (k *killSeries) conclude(s *stage, err error, took time.Duration) {
	k.Kills, k.Seconds = len(k.all), took.Round(time.Second).Seconds()
	k.Events, k.Twice = s.roster.counted()
	if err = errors.Join(append(s.failures, err)...); err != nil {
		k.Red = append(k.Red, err.Error())
	}
	if want := k.plan.rounds * k.plan.victims; k.Kills < want {
		k.Red = append(k.Red, fmt.Sprintf("%d kills of %d", k.Kills, want))
	}
	if k.Twice > 0 {
		k.Red = append(k.Red, fmt.Sprintf("%d comings and goings told twice", k.Twice))
	}
	for _, measure := range k.measures() {
		var times []time.Duration
		for _, one := range k.all {
			times = append(times, measure.of(one))
		}
		if len(times) == 0 {
			continue
		}
		slices.Sort(times)
		p50, longest := times[len(times)/2], times[len(times)-1]
		*measure.into = spread{p50.Milliseconds(), longest.Milliseconds()}
		if longest > measure.bar {
			k.Red = append(k.Red, fmt.Sprintf("%s: %s", measure.name, seconds(longest)))
		}
	}
	if len(k.Red) > 0 {
		k.Evidence = s.roster.evidence
	}
}

type measure struct {
	name string
	of   func(kill) time.Duration
	into *spread
	bar  time.Duration
}

func (k *killSeries) measures() []measure {
	return []measure{
		{"no broker names them in any answer, or calls their user online", func(o kill) time.Duration { return o.Answers }, &k.Answers, k.plan.bars.answers},
		{"each watcher was told `leave` of each", func(o kill) time.Duration { return o.Told }, &k.Told, k.plan.bars.told},
		{"each watcher was told `leave` of the user, whose grace is 5 s", func(o kill) time.Duration { return o.Offline }, &k.Offline, k.plan.bars.offline},
	}
}

func (k *killSeries) verdict() string {
	if len(k.Red) > 0 {
		return "RED"
	}
	return "ok"
}

// markdown is a section of the ledger, and what a terminal shows.
func (k *killSeries) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, `
## Presence after kill -9

%d kills, %d of %d brokers in each round, at moments of a beat that the seed chooses. Each had %d clients of one user, who do not
come back. The others have a watcher each. Beat %s, lease %s, janitor every %s. Of %d comings and goings told, %d were told
twice: **%s**.

| from the kill until | p50 | max | red above |
|---|---|---|---|
`, k.Kills, k.AtOnce, k.AtOnce+observers, k.Clients, k.Beat, k.Lease, k.Janitor, k.Events, k.Twice, k.verdict())
	for _, m := range k.measures() {
		fmt.Fprintf(&b, "| %s | %.1f s | %.1f s | %s |\n", m.name, float64(m.into.P50)/1000, float64(m.into.Max)/1000, m.bar)
	}
	if len(k.Red) > 0 {
		fmt.Fprintf(&b, "\n```\n%s```\n", k.explain())
	}
	return b.String()
}

// explain says why it is red.
func (k *killSeries) explain() string {
	return explain(killsName, k.Red, k.Evidence)
}
