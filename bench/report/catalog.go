package report

import (
	"slices"
	"strings"
)

// metric describes one measured quantity of a scenario.
type metric struct {
	id, name       string
	unit           unit
	higherIsBetter bool // otherwise lower is better, unless neutral
	neutral        bool // neither higher nor lower is better
	plot           bool // drawn as bars
}

// scenario describes one kind of measurement.
type scenario struct {
	id, title, text string
	metrics         []metric
	curve           *curve
}

// curve describes the plot of a scenario with an x axis.
type curve struct {
	metric        string
	x, y          string // axis titles
	xIsPercentile bool   // x is a percentile; its axis has equal steps from 90 to 99 to 99.9
}

var (
	perDelivery          = metric{id: "cpu_us_per_delivery", name: "CPU per delivery", unit: micros, plot: true}
	perPush              = metric{id: "cpu_us_per_push", name: "CPU per push", unit: micros, plot: true}
	deliveries           = metric{id: "deliveries_per_s", name: "deliveries per second", unit: plain, higherIsBetter: true}
	pushes               = metric{id: "pushes_per_s", name: "pushes per second", unit: plain, higherIsBetter: true}
	redisPerDelivery     = metric{id: "redis_us_per_delivery", name: "Redis part", unit: micros, neutral: true}
	redisPerPush         = metric{id: "redis_us_per_push", name: "Redis part", unit: micros, neutral: true}
	generatorPerDelivery = metric{id: "generator_us_per_delivery", name: "load generator", unit: micros, neutral: true}
	generatorPerPush     = metric{id: "generator_us_per_push", name: "load generator", unit: micros, neutral: true}
	latency              = metric{id: "latency_us", name: "latency", unit: micros}
	perPushNeutral       = metric{id: "cpu_us_per_push", name: "CPU per push", unit: micros, neutral: true}
	perRead              = metric{id: "deliveries_per_read", name: "messages per read", unit: plain, neutral: true}
	pushRate             = metric{id: "rate_per_s", name: "rate, pushes per second", unit: plain, neutral: true}
)

// The metrics of rooms.
var (
	roomMetrics = []metric{
		{id: "joins_per_s", name: "joins per second", unit: plain, higherIsBetter: true},
		{id: "cpu_us_per_join", name: "CPU per join", unit: micros},
		{id: "changes_per_s", name: "changes per second", unit: plain, higherIsBetter: true},
		perDelivery, redisPerDelivery,
		{id: "cores", name: "cores used meanwhile", unit: plain, neutral: true},
	}
	roomMemory = metric{id: "rss_bytes_per_room", name: "RSS per room", unit: kilo}
	roomRedis  = metric{id: "redis_bytes_per_room", name: "Redis per room", unit: kilo}
)

var catalog = []scenario{
	{
		id: "idle", title: "Memory of an idle connection",
		text: "Each connection has one subscription; history is on. The figure is the growth of the server's processes after their memory is steady. " +
			"“http” is a WebSocket and “sse” an event stream (Server-Sent Events), both on the HTTP port.",
		metrics: []metric{
			{id: "rss_bytes_per_conn", name: "RSS per connection", unit: kilo, plot: true},
			{id: "redis_bytes_per_conn", name: "Redis per connection", unit: kilo},
		},
	},
	{
		id: "fanout-10k", title: "One channel, 10,000 subscribers, one publisher",
		text: "Each push starts after all subscribers have received the one before, so each delivery is a separate write. " +
			"The floor is a program that only calls write(2) on each socket. " +
			"An event of “sse” has an id with the subscriber's positions, so each delivery is encoded on its own.",
		metrics: []metric{perDelivery, redisPerDelivery, deliveries, generatorPerDelivery},
	},
	{
		id: "fanout-1k-16p", title: "One channel, 1,000 subscribers, 16 publishers",
		text:    "A closed loop with at most 256 messages in flight. A server may coalesce several messages into one write.",
		metrics: []metric{perDelivery, redisPerDelivery, {id: "deliveries_per_s", name: "deliveries per second", unit: plain, higherIsBetter: true, plot: true}, generatorPerDelivery},
	},
	{
		id: "single-10k", title: "10,000 subscribers with a channel each, 32 publishers",
		text: "A closed loop of single pushes. “Queue” means that messages go to the queues of clients and not to channels; a queue keeps a message until it is acknowledged. " +
			"“centrifuge” keeps the history for recovery in Redis, “centrifuge memory” in its own memory.",
		metrics: []metric{perPush, redisPerPush, pushes, generatorPerPush},
	},
	{
		id: "batch-100", title: "The same with 100 pushes per call",
		text:    "No other server has a batch call that stores and acknowledges each message.",
		metrics: []metric{perPush, redisPerPush, pushes, generatorPerPush},
	},
	{
		id: "latency", title: "Latency at a fixed rate",
		text: "An open loop: pushes are due at fixed moments, independent of the server, at half the rate that centrifuge can sustain. " +
			"Latency is the time from the moment when a message was due until a subscriber has received it.",
		metrics: []metric{latency, perPush, redisPerPush, generatorPerPush, pushRate},
		curve:   &curve{metric: "latency_us", x: "percentile of the deliveries", y: "latency, µs", xIsPercentile: true},
	},
	{
		id: "latency-2k", title: "Latency at a moderate load",
		text: "The same at 2,000 pushes a second to 10,000 subscribers with a channel each, a rate that loads no server here. " +
			"CPU per push includes the server's other work for its connections.",
		metrics: []metric{latency, perPush, redisPerPush, generatorPerPush, pushRate},
		curve:   &curve{metric: "latency_us", x: "percentile of the deliveries", y: "latency, µs", xIsPercentile: true},
	},
	{
		id: "herd", title: "15,000 clients reconnect at once",
		text: "All connections are cut, each client misses a message, and all reconnect. CPU is counted until each client has received the message that it missed.",
		metrics: []metric{
			{id: "cpu_us_per_conn", name: "server CPU per client", unit: micros, plot: true},
			{id: "redis_us_per_conn", name: "Redis CPU per client", unit: micros},
			{id: "redis_commands_per_conn", name: "Redis commands per client", unit: plain},
			{id: "seconds", name: "time until all are served", unit: second},
		},
	},
	{
		id: "herd-webhooks", title: "15,000 users reconnect at once, without and with webhooks",
		text: "The same, but each client is a user. With webhooks, brokers record each bind, and a janitor works out the events " +
			"and sends them to the backend. The janitor's CPU until all clients are served counts as the server's. " +
			"A janitor needs Redis, so the broker in memory is not measured.",
		metrics: []metric{
			{id: "cpu_us_per_conn", name: "server CPU per client", unit: micros, plot: true},
			{id: "janitor_us_per_conn", name: "janitor part", unit: micros, neutral: true},
			{id: "redis_us_per_conn", name: "Redis CPU per client", unit: micros},
			{id: "redis_commands_per_conn", name: "Redis commands per client", unit: plain},
			{id: "seconds", name: "time until all are served", unit: second},
		},
	},
	{
		id: "idle-cpu", title: "15,000 idle connections",
		text: "The only traffic is one heartbeat per connection every 25 s.",
		metrics: []metric{
			{id: "cpu_ms_per_min", name: "server CPU per minute", unit: millis, plot: true},
			{id: "redis_commands_per_conn_min", name: "Redis commands per connection and minute", unit: plain},
		},
	},
	{
		id: "instances", title: "A push to one channel with more brokers",
		text: "1,000 subscribers of one channel, spread over the brokers; one push at a time. The CPU of idle brokers and Redis is subtracted. " +
			"Several brokers need Redis, so the broker in memory is not measured.",
		metrics: []metric{
			{id: "cpu_us_per_push", name: "CPU per push, all brokers and Redis", unit: micros},
			redisPerPush, {id: "rest_ms_per_s", name: "subtracted: idle CPU per second", unit: millis, neutral: true}, pushes, generatorPerPush,
		},
		curve: &curve{metric: "cpu_us_per_push", x: "brokers", y: "CPU per push, µs"},
	},
	{
		id: "beat", title: "CPU of an idle broker with more connections",
		text: "The broker only renews its lease every two seconds (the beat). The work that connecting caused is over, and no client's heartbeat is due.",
		metrics: []metric{
			{id: "cpu_ms_per_s", name: "server CPU per second", unit: millis},
			{id: "redis_ms_per_s", name: "Redis CPU per second", unit: millis},
		},
		curve: &curve{metric: "cpu_ms_per_s", x: "connections", y: "CPU per second, ms"},
	},
	{
		id: "state-update", title: "A change of one field, 2,000 channels with a subscriber each, 32 publishers",
		text: "A closed loop. Systems with “state” set one of the 64 fields of a channel, and the others send a message with the same payload. " +
			"Both are stored, and a subscriber receives them. “Guarded” changes the field on condition that it exists. " +
			"“centrifuge map” has the map subscriptions of the library. The floor is Redis alone: HSET and ZADD in a script, without messages and subscribers.",
		metrics: []metric{perPush, redisPerPush, pushes, generatorPerPush},
	},
	{
		id: "state-page", title: "A read of 64 fields, 16 readers",
		text: "Each reader requests all fields of a channel over HTTP, and then those of the next channel. The floor is one HGETALL.",
		metrics: []metric{
			{id: "cpu_us_per_page", name: "CPU per page", unit: micros, plot: true},
			{id: "redis_us_per_page", name: "Redis part", unit: micros, neutral: true},
			{id: "pages_per_s", name: "pages per second", unit: plain, higherIsBetter: true},
		},
	},
	{
		id: "state-fanout", title: "Changes of a field, 1,000 subscribers, one publisher",
		text:    "Each push starts after all subscribers have received the one before. Systems with “state” or “map” change a field; the others send a message with the same payload.",
		metrics: []metric{perDelivery, redisPerDelivery, deliveries, generatorPerDelivery},
	},
	{
		id: "state-fanout-16p", title: "Changes of a field, 1,000 subscribers, 16 publishers",
		text:    "The same in a closed loop with at most 256 messages in flight. A server may coalesce several messages into one write.",
		metrics: []metric{perDelivery, redisPerDelivery, deliveries, generatorPerDelivery},
	},
	{
		id: "cursors", title: "50 cursors in one channel",
		text: "Each of 50 clients sends its position 20 times a second, and receives those of the others. “switchboard tcp” and “switchboard memory” send it with `here`: it is " +
			"never stored, and a newer value may replace an older one within 50 ms, which is part of the latency. “centrifuge” sends a message without history. With “state”, each " +
			"cursor is a field: every value is stored and delivered. “centrifuge map” uses an ephemeral map, which the library recommends for cursors. " +
			"Latency is the time from sending a value until another client has received it.",
		metrics: []metric{
			{id: "cpu_us_per_value", name: "CPU per value sent", unit: micros, plot: true},
			{id: "redis_us_per_value", name: "Redis part", unit: micros, neutral: true},
			{id: "deliveries_per_value", name: "deliveries per value", unit: plain, neutral: true},
			{id: "latency_p50_us", name: "latency, p50", unit: micros, neutral: true},
			{id: "latency_p99_us", name: "latency, p99", unit: micros, neutral: true},
		},
	},
	{
		id: "state-memory", title: "Memory of a field",
		text: "100 channels of 1,000 fields. A value has 90 bytes. The store is Redis, or the heap of the server's process. With the log, the messages that set the fields are counted, too. " +
			"The snapshot is the growth of the server's heap when each channel gets a subscriber with the state.",
		metrics: []metric{
			{id: "state_bytes_per_field", name: "Redis, state alone", unit: octets, plot: true},
			{id: "store_bytes_per_field", name: "store, with the log", unit: octets},
			{id: "snapshot_bytes_per_field", name: "snapshot in the server", unit: octets},
		},
	},
	{
		id: "state-idle", title: "Memory of an idle connection with a state",
		text: "10,000 connections are subscribed to one channel, and have received its 64 fields if the system has a state.",
		metrics: []metric{
			{id: "rss_bytes_per_conn", name: "RSS per connection", unit: kilo},
			{id: "redis_bytes_per_conn", name: "Redis per connection", unit: kilo},
		},
	},
	{
		id: "load", title: "Connections, and pushes one at a time",
		text: "The heap and the stacks are read after a garbage collection. Each push starts after all subscribers have received the one before.",
		metrics: []metric{
			{id: "cpu_us_per_connect", name: "CPU per connect", unit: micros, neutral: true},
			{id: "rss_bytes_per_conn", name: "RSS per connection", unit: kilo, neutral: true},
			{id: "heap_bytes_per_conn", name: "heap", unit: kilo, neutral: true},
			{id: "stack_bytes_per_conn", name: "stacks", unit: kilo, neutral: true},
			perDelivery, perPushNeutral, redisPerPush, perRead, generatorPerDelivery,
		},
	},
	{
		id: "load-loop", title: "Pushes in a closed loop",
		text:    "At most 256 messages are in flight. The broker may coalesce several messages into one write.",
		metrics: []metric{perDelivery, deliveries, perPushNeutral, redisPerPush, perRead, generatorPerDelivery},
	},
	{
		id: "rooms-4", title: "500 rooms of 4 players",
		text: "Half of the rooms are in motion: each player changes its position again as soon as its last change has come back, and all players of the room receive it. " +
			"A change of the broker is stored with an id in a history, checked against the rights of its field, and acknowledged to its writer; a change of Colyseus is an assignment in the " +
			"memory of its process. The broker sends JSON, Colyseus a binary patch of 13 bytes for each player. “50 ms” delays a change by 25 ms on average, and its changes a second are " +
			"bounded by the patches: 20 for each player. A join of Colyseus takes two connections, one to the matchmaker, as its client library does; that of the broker takes one. " +
			"The memory of Node.js grows in steps, and so does that of Go: the ranges show it.",
		metrics: slices.Concat(roomMetrics, []metric{
			roomMemory, roomRedis,
			{id: "idle_us_per_room", name: "CPU of an idle room a second", unit: micros},
		}),
	},
	{
		id: "rooms-50", title: "20 rooms of 50 players",
		text:    "The same in all rooms. The broker sends several changes of a channel with one write if they are due at the same time, but never waits for more. Patches every 50 ms do wait.",
		metrics: roomMetrics,
	},
	{
		id: "rooms-empty", title: "1,000 rooms without players",
		metrics: []metric{roomMemory, roomRedis},
	},
	{
		id: "holds", title: "Holds of one unit, from 16 connections of a backend",
		text: "The holds of one resource are in one channel. The memory store looks at the names of all fields of a channel for each hold, Redis has an index of the names.",
		metrics: []metric{
			{id: "cpu_us_per_hold", name: "CPU per hold", unit: micros},
			{id: "holds_per_s", name: "holds per second", unit: plain, higherIsBetter: true},
		},
		curve: &curve{metric: "cpu_us_per_hold", x: "resources", y: "CPU per hold, µs"},
	},
}

// floorSystem begins the names of the floors: the least work that a system could do.
const floorSystem = "floor"

// isOurs reports whether a system is this project's broker.
func isOurs(system string) bool { return strings.HasPrefix(system, "switchboard") }

// isPeer reports whether a system is another project's server.
func isPeer(system string) bool { return !isOurs(system) && !strings.HasPrefix(system, floorSystem) }

// inMemory reports whether a system keeps its messages in the memory of its own process. Otherwise
// it keeps them in Redis.
func inMemory(system string) bool {
	words := strings.Fields(system)
	return slices.Contains(words, "memory") || len(words) > 0 && slices.Contains([]string{"nchan", "mosquitto", "colyseus"}, words[0])
}

// scenarios returns the scenarios that the run has results for: those of the catalog, then any
// others.
func (r Run) scenarios() (found []scenario) {
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
		s.metrics = slices.DeleteFunc(metrics, func(m metric) bool { return !r.has(s.id, m.id) })
		if len(s.metrics) > 0 {
			found = append(found, s)
		}
	}
	return found
}

func (r Run) has(scenario, metric string) bool {
	return slices.ContainsFunc(r.Results, func(res Result) bool {
		return res.Scenario == scenario && res.Metric == metric && len(res.Values) > 0
	})
}

// values returns the values of one result.
func (r Run) values(scenario, system, metric string, x float64) []float64 {
	for _, res := range r.Results {
		if res.Scenario == scenario && res.System == system && res.Metric == metric && res.X == x {
			return res.Values
		}
	}
	return nil
}

// systems returns the systems of a scenario in the order of measurement.
func (r Run) systems(scenario string) (names []string) {
	for _, res := range r.Results {
		if res.Scenario == scenario && !slices.Contains(names, res.System) {
			names = append(names, res.System)
		}
	}
	return names
}

// xs returns the points of a curve.
func (r Run) xs(scenario, metric string) (points []float64) {
	for _, res := range r.Results {
		if res.Scenario == scenario && res.Metric == metric && !slices.Contains(points, res.X) {
			points = append(points, res.X)
		}
	}
	slices.Sort(points)
	return points
}
