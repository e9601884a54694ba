package report

import (
	"fmt"
	"slices"
	"strings"
)

// Target is a goal for one of our figures.
type Target struct {
	Work     string // description
	Scenario string
	System   string
	Metric   string
	X        float64
	RatioTo  string  // a system; if set, the figure is the ratio to that system's, in the same rounds
	RatioToX float64 // a point; if set, the figure is the ratio to that point of the curve
	Limit    float64 // in the unit of the metric's results, or a ratio
	AtLeast  bool    // Limit is a minimum, not a maximum
}

// Targets are the goals of this project. History and resuming are always on.
var Targets = []Target{
	{Work: "idle connection, TCP: RSS", Scenario: "idle", System: "switchboard tcp", Metric: "rss_bytes_per_conn", Limit: 1200},
	{Work: "idle connection, WebSocket on gnet: RSS", Scenario: "idle", System: "switchboard ws", Metric: "rss_bytes_per_conn", Limit: 1500},
	{Work: "idle connection, WebSocket on the HTTP port: RSS", Scenario: "idle", System: "switchboard http", Metric: "rss_bytes_per_conn", Limit: 8000},
	{
		Work:     "idle connection, Server-Sent Events on the HTTP port: RSS relative to a WebSocket there",
		Scenario: "idle", System: "switchboard sse", Metric: "rss_bytes_per_conn", RatioTo: "switchboard http", Limit: 1.1,
	},
	{
		Work: "one channel, 10,000 subscribers, one publisher: CPU per delivery relative to the floor", Scenario: "fanout-10k",
		System: "switchboard tcp", Metric: "cpu_us_per_delivery", RatioTo: floorSystem, Limit: 1.15,
	},
	{
		Work: "one channel, 1,000 subscribers, 16 publishers: CPU per delivery, Redis included", Scenario: "fanout-1k-16p",
		System: "switchboard tcp", Metric: "cpu_us_per_delivery", Limit: 0.5,
	},
	{
		Work: "one channel, 1,000 subscribers, 16 publishers: deliveries per second", Scenario: "fanout-1k-16p",
		System: "switchboard tcp", Metric: "deliveries_per_s", Limit: 2e6, AtLeast: true,
	},
	{
		Work: "10,000 subscribers with a channel each, 32 publishers: CPU per push, Redis included", Scenario: "single-10k",
		System: "switchboard tcp", Metric: "cpu_us_per_push", Limit: 45,
	},
	{
		Work: "the queues of 10,000 clients, 32 publishers: CPU per push, Redis included", Scenario: "single-10k",
		System: "switchboard tcp queue", Metric: "cpu_us_per_push", Limit: 45,
	},
	{
		Work:     "10,000 subscribers with a channel each, over Redis: CPU per push relative to centrifuge with its history in Redis",
		Scenario: "single-10k", System: "switchboard tcp", Metric: "cpu_us_per_push", RatioTo: "centrifuge", Limit: 0.65,
	},
	{
		Work: "10,000 subscribers with a channel each, in memory: CPU per push relative to nchan", Scenario: "single-10k",
		System: "switchboard memory", Metric: "cpu_us_per_push", RatioTo: "nchan", Limit: 0.8,
	},
	{Work: "channels in batches of 100: CPU per push", Scenario: "batch-100", System: "switchboard tcp", Metric: "cpu_us_per_push", Limit: 12},
	{Work: "queues in batches of 100: CPU per push", Scenario: "batch-100", System: "switchboard tcp queue", Metric: "cpu_us_per_push", Limit: 12},
	{Work: "latency at a fixed rate, p50, relative to centrifuge", Scenario: "latency", System: "switchboard tcp", Metric: "latency_us", X: 50, RatioTo: "centrifuge", Limit: 0.6},
	{Work: "latency at a fixed rate, p99, relative to centrifuge", Scenario: "latency", System: "switchboard tcp", Metric: "latency_us", X: 99, RatioTo: "centrifuge", Limit: 0.6},
	{Work: "15,000 clients reconnect and resume: server CPU per client", Scenario: "herd", System: "switchboard tcp", Metric: "cpu_us_per_conn", Limit: 70},
	{
		Work: "15,000 idle connections with heartbeats: server CPU relative to centrifuge", Scenario: "idle-cpu",
		System: "switchboard tcp", Metric: "cpu_ms_per_min", RatioTo: "centrifuge", Limit: 0.3,
	},
	{
		Work: "Redis commands per idle connection and minute", Scenario: "idle-cpu",
		System: "switchboard tcp", Metric: "redis_commands_per_conn_min", Limit: 0.1,
	},
	{Work: "a push to one channel over 8 brokers relative to one broker", Scenario: "instances", System: "switchboard tcp", Metric: "cpu_us_per_push", X: 8, RatioToX: 1, Limit: flatLimit},
	{Work: "idle broker with 15,000 connections: CPU per second relative to 1,000 connections", Scenario: "beat", System: "switchboard tcp", Metric: "cpu_ms_per_s", X: 15_000, RatioToX: 1_000, Limit: flatLimit},
	{
		Work: "a change of one field, over Redis: CPU per push relative to a message", Scenario: "state-update",
		System: "switchboard tcp state", Metric: "cpu_us_per_push", RatioTo: "switchboard tcp", Limit: 2,
	},
	{
		Work: "a change of one field, in memory: CPU per push relative to a message", Scenario: "state-update",
		System: "switchboard memory state", Metric: "cpu_us_per_push", RatioTo: "switchboard memory", Limit: 2,
	},
	{Work: "a page of 64 fields: Redis CPU", Scenario: "state-page", System: "switchboard tcp state", Metric: "redis_us_per_page", Limit: 500},
	{
		Work: "changes to 1,000 subscribers, one publisher: CPU per delivery relative to messages", Scenario: "state-fanout",
		System: "switchboard tcp state", Metric: "cpu_us_per_delivery", RatioTo: "switchboard tcp", Limit: 1.3,
	},
	{
		Work: "changes to 1,000 subscribers, 16 publishers: CPU per delivery relative to messages", Scenario: "state-fanout-16p",
		System: "switchboard tcp state", Metric: "cpu_us_per_delivery", RatioTo: "switchboard tcp", Limit: 1.3,
	},
	roomTarget("rooms-4", "memory", "each"), roomTarget("rooms-4", "memory", "50 ms"), roomTarget("rooms-4", "redis", "each"), roomTarget("rooms-4", "redis", "50 ms"),
	roomTarget("rooms-50", "memory", "each"), roomTarget("rooms-50", "memory", "50 ms"), roomTarget("rooms-50", "redis", "each"), roomTarget("rooms-50", "redis", "50 ms"),
	{Work: "idle connection with a state, TCP: RSS", Scenario: "state-idle", System: "switchboard tcp state", Metric: "rss_bytes_per_conn", Limit: 1200},
}

// roomTarget is that a change shall cost a fifth of what it costs in Colyseus: five times as many
// changes with one core.
func roomTarget(scenario, store, patches string) Target {
	peer := "colyseus " + patches
	return Target{
		Work:     "a change in " + strings.ReplaceAll(scenario, "-", " of ") + ", " + store + ": CPU per delivery relative to " + peer,
		Scenario: scenario, System: "switchboard " + store + " rooms", Metric: "cpu_us_per_delivery", RatioTo: peer, Limit: 0.2,
	}
}

// flatLimit is the largest ratio of a curve's last point to its first.
const flatLimit = 1.25

// verdict is the result of comparing the run with a target.
type verdict struct {
	Target
	measured   bool
	reason     string // why it was not measured
	met        bool
	figure     figure
	absolute   figure // the measured value; figure may be a ratio
	unit       unit   // of figure
	metricUnit unit   // of absolute and bestFigure
	bestPeer   string // best peer in the scenario, "" for none
	bestFigure figure
}

// evaluate compares the run with the targets of its scenarios.
func (r Run) evaluate() (all []verdict) {
	for _, t := range Targets {
		if v := r.evaluateTarget(t); v.reason != notRun {
			all = append(all, v)
		}
	}
	return all
}

// evaluateTarget compares the run with one target.
func (r Run) evaluateTarget(t Target) verdict {
	m := metricOf(t.Scenario, t.Metric)
	v := verdict{Target: t, unit: m.unit, metricUnit: m.unit}
	if t.RatioTo != "" || t.RatioToX != 0 {
		v.unit = times
	}
	v.bestPeer, v.bestFigure = r.bestPeer(t.Scenario, m, t.X)
	own := r.values(t.Scenario, t.System, t.Metric, t.X)
	if v.absolute, v.measured = newFigure(own); !v.measured {
		v.reason = r.missingReason(t.Scenario, t.System)
		return v
	}
	switch {
	case t.RatioTo != "":
		v.figure, v.measured = ratio(own, r.values(t.Scenario, t.RatioTo, t.Metric, t.X))
		v.reason = r.missingReason(t.Scenario, t.RatioTo)
	case t.RatioToX != 0:
		v.figure, v.measured = ratio(own, r.values(t.Scenario, t.System, t.Metric, t.RatioToX))
		v.reason = fmt.Sprintf("no result at %s", formatNumber(t.RatioToX))
	default:
		v.figure = v.absolute
	}
	v.met = v.measured && t.isMet(v.figure.median)
	return v
}

// isMet reports whether the value is within the limit.
func (t Target) isMet(value float64) bool {
	if t.AtLeast {
		return value >= t.Limit
	}
	return value <= t.Limit
}

// limitText formats the limit.
func (v verdict) limitText() string {
	sign := "≤"
	if v.AtLeast {
		sign = "≥"
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", sign, tickLabel(v.Limit*v.unit.scale), v.unit.name))
}

// outcome formats the verdict.
func (v verdict) outcome() string {
	switch {
	case !v.measured:
		return "not measured: " + v.reason
	case v.met:
		return "met"
	}
	return "**missed**"
}

// notRun is the reason for a scenario that this run does not have.
const notRun = "the scenario was not run"

// missingReason returns the reason why a system has no result. A text of Invalid begins with
// "SCENARIO, SYSTEM, round", with "SCENARIO, SYSTEM at POINT, round", or with "SYSTEM:".
func (r Run) missingReason(scenario, system string) string {
	for _, text := range r.Invalid {
		rest, found := strings.CutPrefix(text, scenario+", "+system)
		if found && (strings.HasPrefix(rest, ",") || strings.HasPrefix(rest, " at ")) || strings.HasPrefix(text, system+":") {
			return text
		}
	}
	switch systems := r.systems(scenario); {
	case len(systems) == 0:
		return notRun
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

// bestPeer returns the best peer and its figure.
func (r Run) bestPeer(scenario string, m metric, x float64) (name string, f figure) {
	for _, system := range r.systems(scenario) {
		if !isPeer(system) || m.neutral {
			continue
		}
		if g, ok := newFigure(r.values(scenario, system, m.id, x)); ok && (name == "" || m.better(g.median, f.median)) {
			name, f = system, g
		}
	}
	return name, f
}

func (m metric) better(a, b float64) bool { return a != b && m.higherIsBetter == (a > b) }
