package report

import (
	"fmt"
	"slices"
	"strings"
)

// Target is a figure of ours, and what it is held against.
type Target struct {
	Work     string // in words
	Scenario string
	System   string
	Metric   string
	X        float64
	Over     string  // a system: the figure is a ratio to that of this one, in the same rounds
	OverX    float64 // an x: the figure is a ratio to that of this one on the same curve
	Bar      float64 // in the unit of the metric's results, or of a ratio
	AtLeast  bool    // Bar is the least, not the most
}

// Targets are what this project wants to reach, history and resume always on.
var Targets = []Target{
	{Work: "idle connection, TCP: RSS", Scenario: "idle", System: "switchboard tcp", Metric: "rss_bytes_per_conn", Bar: 1200},
	{Work: "idle connection, WebSocket on gnet: RSS", Scenario: "idle", System: "switchboard ws", Metric: "rss_bytes_per_conn", Bar: 1500},
	{Work: "idle connection, WebSocket on the HTTP port: RSS", Scenario: "idle", System: "switchboard http", Metric: "rss_bytes_per_conn", Bar: 8000},
	{
		Work: "one channel, 10,000 subscribers, one publisher: CPU per delivery, to the floor's", Scenario: "fanout-10k",
		System: "switchboard tcp", Metric: "cpu_us_per_delivery", Over: floorSystem, Bar: 1.15,
	},
	{
		Work: "one channel, 1,000 subscribers, 16 publishers: CPU per delivery, Redis included", Scenario: "fanout-1k-16p",
		System: "switchboard tcp", Metric: "cpu_us_per_delivery", Bar: 0.5,
	},
	{
		Work: "the same: deliveries per second", Scenario: "fanout-1k-16p",
		System: "switchboard tcp", Metric: "deliveries_per_s", Bar: 2e6, AtLeast: true,
	},
	{
		Work: "10,000 subscribers with a channel each, 32 publishers: CPU per push, Redis included", Scenario: "single-10k",
		System: "switchboard tcp", Metric: "cpu_us_per_push", Bar: 45,
	},
	{
		Work: "10,000 clients by their queues, 32 publishers: CPU per push, Redis included", Scenario: "single-10k",
		System: "switchboard tcp queue", Metric: "cpu_us_per_push", Bar: 45,
	},
	{
		Work:     "10,000 subscribers with a channel each, over Redis: CPU per push, to that of centrifuge with its history in Redis",
		Scenario: "single-10k", System: "switchboard tcp", Metric: "cpu_us_per_push", Over: "centrifuge", Bar: 0.65,
	},
	{
		Work: "the same in memory: CPU per push, to nchan's", Scenario: "single-10k",
		System: "switchboard memory", Metric: "cpu_us_per_push", Over: "nchan", Bar: 0.8,
	},
	{Work: "channels in batches of 100: CPU per push", Scenario: "batch-100", System: "switchboard tcp", Metric: "cpu_us_per_push", Bar: 12},
	{Work: "queues in batches of 100: CPU per push", Scenario: "batch-100", System: "switchboard tcp queue", Metric: "cpu_us_per_push", Bar: 12},
	{Work: "latency at a fixed rate, p50, to centrifuge's", Scenario: "latency", System: "switchboard tcp", Metric: "latency_us", X: 50, Over: "centrifuge", Bar: 0.6},
	{Work: "the same, p99", Scenario: "latency", System: "switchboard tcp", Metric: "latency_us", X: 99, Over: "centrifuge", Bar: 0.6},
	{Work: "15,000 clients reconnect and resume: server CPU each", Scenario: "herd", System: "switchboard tcp", Metric: "cpu_us_per_conn", Bar: 70},
	{
		Work: "15,000 idle connections with heartbeats: server CPU, to centrifuge's", Scenario: "idle-cpu",
		System: "switchboard tcp", Metric: "cpu_ms_per_min", Over: "centrifuge", Bar: 0.3,
	},
	{
		Work: "Redis commands per idle connection and minute", Scenario: "idle-cpu",
		System: "switchboard tcp", Metric: "redis_commands_per_conn_min", Bar: 0.1,
	},
	{Work: "a push to one channel over 8 brokers, to one broker's", Scenario: "instances", System: "switchboard tcp", Metric: "cpu_us_per_push", X: 8, OverX: 1, Bar: flat},
	{Work: "a beat with 15,000 connections, to 1,000's", Scenario: "beat", System: "switchboard tcp", Metric: "cpu_ms_per_s", X: 15_000, OverX: 1_000, Bar: flat},
}

// flat is what a curve may rise by from its first point to its last.
const flat = 1.25

// verdict is a target beside what was measured.
type verdict struct {
	Target
	measured bool
	why      string // it was not measured
	met      bool
	figure   figure
	own      figure // behind a ratio: the figure itself
	unit     unit   // of figure
	ownUnit  unit
	best     string // peer of the same scenario, "" for none
	bestOf   figure
}

// judge holds the run against the targets.
func (r Run) judge() (all []verdict) {
	for _, t := range Targets {
		all = append(all, r.hold(t))
	}
	return all
}

// hold holds it against one.
func (r Run) hold(t Target) verdict {
	m := metricOf(t.Scenario, t.Metric)
	v := verdict{Target: t, unit: m.unit, ownUnit: m.unit}
	if t.Over != "" || t.OverX != 0 {
		v.unit = times
	}
	v.best, v.bestOf = r.best(t.Scenario, m, t.X)
	own := r.values(t.Scenario, t.System, t.Metric, t.X)
	if v.own, v.measured = summary(own); !v.measured {
		v.why = r.missing(t.Scenario, t.System)
		return v
	}
	switch {
	case t.Over != "":
		v.figure, v.measured = ratio(own, r.values(t.Scenario, t.Over, t.Metric, t.X))
		v.why = r.missing(t.Scenario, t.Over)
	case t.OverX != 0:
		v.figure, v.measured = ratio(own, r.values(t.Scenario, t.System, t.Metric, t.OverX))
		v.why = fmt.Sprintf("nothing at %s", number(t.OverX))
	default:
		v.figure = v.own
	}
	v.met = v.measured && (t.AtLeast == (v.figure.median > t.Bar) || v.figure.median == t.Bar)
	return v
}

// bar is the target in words.
func (v verdict) bar() string {
	sign := "≤"
	if v.AtLeast {
		sign = "≥"
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", sign, tick(v.Bar*v.unit.scale), v.unit.name))
}

// outcome is the verdict in a word.
func (v verdict) outcome() string {
	switch {
	case !v.measured:
		return "not measured: " + v.why
	case v.met:
		return "met"
	}
	return "**missed**"
}

// missing says why a row is not there.
func (r Run) missing(scenario, system string) string {
	for _, text := range r.Invalid {
		rest, found := strings.CutPrefix(text, scenario+", "+system)
		if found && (strings.HasPrefix(rest, ",") || strings.HasPrefix(rest, " at ")) || strings.HasPrefix(text, system+":") {
			return text
		}
	}
	switch systems := r.systems(scenario); {
	case len(systems) == 0:
		return "the scenario was not run"
	case slices.Contains(systems, system):
		return "this point was not in this run"
	}
	return system + " was not in this run"
}

func metricOf(scenario, id string) metric {
	for _, s := range catalog {
		for _, m := range s.metrics {
			if s.id == scenario && m.id == id {
				return m
			}
		}
	}
	return metric{id: id, name: id, unit: plain, neutral: true}
}

// best is the best of the peers.
func (r Run) best(scenario string, m metric, x float64) (name string, f figure) {
	for _, system := range r.systems(scenario) {
		if !peer(system) || m.neutral {
			continue
		}
		if g, ok := summary(r.values(scenario, system, m.id, x)); ok && (name == "" || m.better(g.median, f.median)) {
			name, f = system, g
		}
	}
	return name, f
}

func (m metric) better(a, b float64) bool { return a != b && m.higher == (a > b) }
