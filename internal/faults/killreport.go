package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// killTimes holds the times after the kill of one broker.
type killTimes struct {
	Answers time.Duration // until no answer of another broker contains its clients
	Leaves  time.Duration // until all watchers received a leave of each client
	Offline time.Duration // until all watchers received a leave of the clients' user
}

// killReport is the result of a series of kills.
type killReport struct {
	Kills    int      `json:"kills"`
	AtOnce   int      `json:"at_once"`
	Clients  int      `json:"clients_of_each"`
	Beat     string   `json:"beat"`
	Lease    string   `json:"lease"`
	Janitor  string   `json:"janitor_every"`
	Seconds  float64  `json:"seconds"`
	Answers  spread   `json:"answers"`
	Leaves   spread   `json:"told"`
	Offline  spread   `json:"offline"`
	Events   int      `json:"events"`
	Repeated int      `json:"told_twice"`
	Red      []string `json:"red,omitempty"`
	Evidence evidence `json:"evidence,omitempty"`

	plan  killPlan
	logs  string
	mu    sync.Mutex // guards kills
	kills []killTimes
}

// spread is the distribution of a time over all kills, in ms.
type spread struct {
	P50 int64 `json:"p50_ms"`
	Max int64 `json:"max_ms"`
}

func newKillReport(plan killPlan) *killReport {
	return &killReport{
		plan: plan, AtOnce: plan.victims, Clients: ghostCount,
		Beat: plan.times.Beat.String(), Lease: plan.times.lease().String(), Janitor: plan.times.janitorInterval().String(),
	}
}

func (k *killReport) add(one killTimes) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kills = append(k.kills, one)
}

// finish computes the report when the series has ended.
func (k *killReport) finish(tb *bed, err error, took time.Duration) {
	k.Kills, k.Seconds = len(k.kills), took.Round(time.Second).Seconds()
	k.Events, k.Repeated = tb.presence.totals()
	if err = errors.Join(append(tb.failures, err)...); err != nil {
		k.Red = append(k.Red, err.Error())
	}
	if want := k.plan.rounds * k.plan.victims; k.Kills < want {
		k.Red = append(k.Red, fmt.Sprintf("%d kills of %d", k.Kills, want))
	}
	if k.Repeated > 0 {
		k.Red = append(k.Red, fmt.Sprintf("%d repeated events", k.Repeated))
	}
	for _, measure := range k.measures() {
		var times []time.Duration
		for _, one := range k.kills {
			times = append(times, measure.value(one))
		}
		if len(times) == 0 {
			continue
		}
		slices.Sort(times)
		p50, longest := times[len(times)/2], times[len(times)-1]
		*measure.result = spread{p50.Milliseconds(), longest.Milliseconds()}
		if longest > measure.limit {
			k.Red = append(k.Red, fmt.Sprintf("%s: %s", measure.name, seconds(longest)))
		}
	}
	if len(k.Red) > 0 {
		k.Evidence = tb.presence.evidence
	}
}

type killMeasure struct {
	name   string
	value  func(killTimes) time.Duration
	result *spread
	limit  time.Duration
}

func (k *killReport) measures() []killMeasure {
	return []killMeasure{
		{"no broker's answer contains the clients, or reports their user online", func(o killTimes) time.Duration { return o.Answers }, &k.Answers, k.plan.limits.answers},
		{"each watcher has received `leave` of each client", func(o killTimes) time.Duration { return o.Leaves }, &k.Leaves, k.plan.limits.leaves},
		{"each watcher has received `leave` of the user, which is sent 5 s after the last device left", func(o killTimes) time.Duration { return o.Offline }, &k.Offline, k.plan.limits.offline},
	}
}

func (k *killReport) verdict() string {
	if len(k.Red) > 0 {
		return "RED"
	}
	return "ok"
}

// markdown returns the section of the ledger, which is also printed.
func (k *killReport) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, `
## Presence after kill -9

%d kills, %d of %d brokers in each round, at moments of a beat that the seed chooses. Each victim had %d clients of one user,
which do not come back. Each other broker has a watcher. Beat %s, lease %s, janitor every %s. The watchers received %d joins
and leaves; %d of them repeated what was known: **%s**.

| time from the kill until | p50 | max | red above |
|---|---|---|---|
`, k.Kills, k.AtOnce, k.AtOnce+observers, k.Clients, k.Beat, k.Lease, k.Janitor, k.Events, k.Repeated, k.verdict())
	for _, m := range k.measures() {
		fmt.Fprintf(&b, "| %s | %.1f s | %.1f s | %s |\n", m.name, float64(m.result.P50)/1000, float64(m.result.Max)/1000, m.limit)
	}
	if len(k.Red) > 0 {
		fmt.Fprintf(&b, "\n```text\n%s```\n", k.explain())
	}
	return b.String()
}

// explain says why the series is red.
func (k *killReport) explain() string {
	return explain(killsName, k.Red, k.Evidence)
}
