package report

import (
	"slices"
	"strings"
)

// metric is one kind of figure.
type metric struct {
	id, name string
	unit     unit
	higher   bool // is better
	neutral  bool // neither way is: a condition of the measurement
	plot     bool // bars against the others
}

// scenario is one kind of work.
type scenario struct {
	id, title, text string
	metrics         []metric
	curve           *curve
}

// curve is how a scenario with an x is drawn.
type curve struct {
	metric     string
	x, y       string // axis titles
	percentile bool   // x is one, and its axis has a step for each nine
}

var (
	perDelivery = metric{id: "cpu_us_per_delivery", name: "CPU per delivery", unit: micros, plot: true}
	perPush     = metric{id: "cpu_us_per_push", name: "CPU per push", unit: micros, plot: true}
	deliveries  = metric{id: "deliveries_per_s", name: "deliveries per second", unit: plain, higher: true}
	pushes      = metric{id: "pushes_per_s", name: "pushes per second", unit: plain, higher: true}
	redisShare  = metric{id: "redis_us_per_delivery", name: "of it Redis", unit: micros, neutral: true}
	redisPush   = metric{id: "redis_us_per_push", name: "of it Redis", unit: micros, neutral: true}
	generator   = metric{id: "generator_us_per_delivery", name: "the generator's own", unit: micros, neutral: true}
	generatorOf = metric{id: "generator_us_per_push", name: "the generator's own", unit: micros, neutral: true}
	latency     = metric{id: "latency_us", name: "latency", unit: micros}
	openRate    = metric{id: "rate_per_s", name: "rate, pushes per second", unit: plain, neutral: true}
)

var catalog = []scenario{
	{
		id: "idle", title: "Memory of an idle connection",
		text: "Connections with one subscription each, history on, left alone until the memory is steady: how much the server's processes grew.",
		metrics: []metric{
			{id: "rss_bytes_per_conn", name: "RSS per connection", unit: kilo, plot: true},
			{id: "redis_bytes_per_conn", name: "Redis per connection", unit: kilo},
		},
	},
	{
		id: "fanout-10k", title: "One channel, 10,000 subscribers, one publisher",
		text: "The next push when everybody has the last: each delivery is a write of its own. " +
			"The floor is a program that does nothing but write(2) to each socket.",
		metrics: []metric{perDelivery, redisShare, deliveries, generator},
	},
	{
		id: "fanout-1k-16p", title: "One channel, 1,000 subscribers, 16 publishers",
		text:    "A closed loop, 256 messages ahead of the subscribers at most: several messages may leave in one write.",
		metrics: []metric{perDelivery, redisShare, {id: "deliveries_per_s", name: "deliveries per second", unit: plain, higher: true, plot: true}, generator},
	},
	{
		id: "single-10k", title: "10,000 subscribers with a channel each, 32 publishers",
		text: "A closed loop of single pushes. “Queue” is the queue of a client, in which a message waits until it is acknowledged, in place of a channel. " +
			"Centrifuge keeps a history, from which a client recovers, in Redis, and “centrifuge memory” in its own memory.",
		metrics: []metric{perPush, redisPush, pushes, generatorOf},
	},
	{
		id: "batch-100", title: "The same, 100 pushes in a call",
		text:    "No peer has a call that stores and acknowledges each of its messages.",
		metrics: []metric{perPush, redisPush, pushes, generatorOf},
	},
	{
		id: "latency", title: "Latency at a fixed rate",
		text: "Pushes at fixed moments, half as many a second as centrifuge can take, whatever the server does. " +
			"The time from the moment at which a message was to be sent until a subscriber has it.",
		metrics: []metric{latency, perPush, redisPush, generatorOf, openRate},
		curve:   &curve{metric: "latency_us", x: "percentile of the deliveries", y: "latency, µs", percentile: true},
	},
	{
		id: "latency-2k", title: "Latency at a moderate load",
		text: "The same at 2,000 pushes a second, to 10,000 subscribers with a channel each: a rate at which no server here is busy. " +
			"CPU per push includes what a server does for its connections meanwhile.",
		metrics: []metric{latency, perPush, redisPush, generatorOf, openRate},
		curve:   &curve{metric: "latency_us", x: "percentile of the deliveries", y: "latency, µs", percentile: true},
	},
	{
		id: "herd", title: "15,000 clients come back at once",
		text: "All are cut off, miss a message each, and reconnect: CPU until each has what it missed.",
		metrics: []metric{
			{id: "cpu_us_per_conn", name: "server CPU per client", unit: micros, plot: true},
			{id: "redis_us_per_conn", name: "Redis CPU per client", unit: micros},
			{id: "redis_commands_per_conn", name: "Redis commands per client", unit: plain},
			{id: "seconds", name: "until all are served", unit: second},
		},
	},
	{
		id: "herd-webhooks", title: "15,000 users come back at once, webhooks off and on",
		text: "The same, but each client is a user. With webhooks on, each bind is noted for the backend, and a janitor finds out " +
			"what to tell it and sends that; what the janitor does until each client is served counts as the server's. " +
			"A janitor needs Redis: the broker in memory has no part in this.",
		metrics: []metric{
			{id: "cpu_us_per_conn", name: "server CPU per client", unit: micros, plot: true},
			{id: "janitor_us_per_conn", name: "of it the janitor", unit: micros, neutral: true},
			{id: "redis_us_per_conn", name: "Redis CPU per client", unit: micros},
			{id: "redis_commands_per_conn", name: "Redis commands per client", unit: plain},
			{id: "seconds", name: "until all are served", unit: second},
		},
	},
	{
		id: "idle-cpu", title: "15,000 connections left alone",
		text: "Nothing but signs of life, every 25 s each.",
		metrics: []metric{
			{id: "cpu_ms_per_min", name: "server CPU per minute", unit: millis, plot: true},
			{id: "redis_commands_per_conn_min", name: "Redis commands per connection and minute", unit: plain},
		},
	},
	{
		id: "instances", title: "A push to one channel as brokers are added",
		text: "1,000 subscribers of one channel, spread over the brokers; one push at a time. What brokers and Redis cost at rest is taken off. " +
			"Only Redis can be shared: the broker in memory has no part in this.",
		metrics: []metric{
			{id: "cpu_us_per_push", name: "CPU per push, all brokers and Redis", unit: micros},
			redisPush, {id: "rest_ms_per_s", name: "taken off: CPU per second at rest", unit: millis, neutral: true}, pushes, generatorOf,
		},
		curve: &curve{metric: "cpu_us_per_push", x: "brokers", y: "CPU per push, µs"},
	},
	{
		id: "beat", title: "An idle second as connections grow",
		text: "Between two signs of life of its clients, once what connecting has caused is over, a broker has only its own beat to keep.",
		metrics: []metric{
			{id: "cpu_ms_per_s", name: "server CPU per second", unit: millis},
			{id: "redis_ms_per_s", name: "Redis CPU per second", unit: millis},
		},
		curve: &curve{metric: "cpu_ms_per_s", x: "connections", y: "CPU per second, ms"},
	},
}

const floorSystem = "floor"

// ours says whether a system is this project's.
func ours(system string) bool { return strings.HasPrefix(system, "switchboard") }

// peer says whether a system is somebody else's.
func peer(system string) bool { return !ours(system) && system != floorSystem }

// inMemory says whether a system keeps its messages in the memory of its own process, for that
// process alone, and not in Redis.
func inMemory(system string) bool {
	words := strings.Fields(system)
	return slices.Contains(words, "memory") || len(words) > 0 && (words[0] == "nchan" || words[0] == "mosquitto")
}

// known is the catalog with what else the run holds behind it, without what it does not hold.
func (r Run) known() (found []scenario) {
	all := slices.Clone(catalog)
	for _, res := range r.Results {
		if i := slices.IndexFunc(all, func(s scenario) bool { return s.id == res.Scenario }); i < 0 {
			all = append(all, scenario{id: res.Scenario, title: res.Scenario})
		}
	}
	for _, s := range all {
		metrics := slices.Clone(s.metrics)
		for _, res := range r.Results {
			if res.Scenario == s.id && !slices.ContainsFunc(metrics, func(m metric) bool { return m.id == res.Metric }) {
				metrics = append(metrics, metric{id: res.Metric, name: res.Metric, unit: plain, neutral: true})
			}
		}
		s.metrics = slices.DeleteFunc(metrics, func(m metric) bool { return !r.holds(s.id, m.id) })
		if len(s.metrics) > 0 {
			found = append(found, s)
		}
	}
	return found
}

func (r Run) holds(scenario, metric string) bool {
	return slices.ContainsFunc(r.Results, func(res Result) bool {
		return res.Scenario == scenario && res.Metric == metric && len(res.Values) > 0
	})
}

// values are those of one row.
func (r Run) values(scenario, system, metric string, x float64) []float64 {
	for _, res := range r.Results {
		if res.Scenario == scenario && res.System == system && res.Metric == metric && res.X == x {
			return res.Values
		}
	}
	return nil
}

// systems are those of a scenario in the order in which they were measured.
func (r Run) systems(scenario string) (names []string) {
	for _, res := range r.Results {
		if res.Scenario == scenario && !slices.Contains(names, res.System) {
			names = append(names, res.System)
		}
	}
	return names
}

// xs are the points of a curve.
func (r Run) xs(scenario, metric string) (points []float64) {
	for _, res := range r.Results {
		if res.Scenario == scenario && res.Metric == metric && !slices.Contains(points, res.X) {
			points = append(points, res.X)
		}
	}
	slices.Sort(points)
	return points
}
