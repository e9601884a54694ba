package main

import (
	"cmp"
	"context"
	"time"
)

// scenario is one kind of measurement with its systems.
type scenario struct {
	id           string
	idleID       string   // id of the scenario whose memory figures are measured with the same connections
	onDemand     bool     // only measured if --only names it
	rooms        bool     // the subscribers are players; each channel is a room with as many
	systems      []string // contenders
	quickSystems []string // systems in a quick run; nil means all
	xs           []int    // points of a curve, one measurement each
	quickXs      []int
	size         size // in a full run
	quick        size // in a quick run; zero skips the scenario
	measure      func(ctx context.Context, t *trial) error
}

// size is the amount of load.
type size struct {
	connections, channels, publishers int

	fields int           // fields of each channel, in systems with state
	batch  int           // pushes per call; 0 means single pushes
	pushes int           // maximum number of pushes, one at a time
	bytes  int           // of a payload; 0 means swarm.PayloadSize
	time   time.Duration // duration of a loop or of idling; no push starts after it
	window int           // maximum number of messages in flight
	rate   float64       // pushes per second of an open loop; 0 means half the rate of centrifuge
}

// override replaces the sizes that are not 0 in o. Where each connection has a channel of its own,
// the number of channels follows.
func (s *size) override(o size) {
	if s.channels == s.connections {
		s.channels = cmp.Or(o.connections, s.channels)
	}
	s.connections, s.channels, s.publishers = cmp.Or(o.connections, s.connections), cmp.Or(o.channels, s.channels), cmp.Or(o.publishers, s.publishers)
	s.pushes, s.bytes = cmp.Or(o.pushes, s.pushes), cmp.Or(o.bytes, s.bytes)
}

// loadSystems are the contenders of the scenarios that "make load" runs.
var loadSystems = []string{
	"floor", "floor ws", "switchboard tcp", "switchboard ws", "switchboard http",
	"switchboard memory", "switchboard memory ws", "switchboard memory http",
}

// roomSystems are the contenders with rooms.
var roomSystems = []string{"switchboard memory rooms", "switchboard redis rooms", "colyseus each", "colyseus 50 ms"}

// scenarios run in this order in each round: latency needs the rates of single-10k.
var scenarios = []scenario{
	{
		id: "fanout-10k", idleID: "idle",
		systems:      []string{"floor", "switchboard tcp", "switchboard ws", "switchboard http", "switchboard sse", "switchboard memory", "nchan", "mosquitto", "mosquitto qos 0", "centrifuge", "socket.io"},
		quickSystems: []string{"floor", "switchboard tcp", "switchboard ws", "switchboard http", "switchboard sse", "switchboard memory", "nchan", "mosquitto", "centrifuge"},
		size:         size{connections: 10_000, channels: 1, publishers: 1, pushes: 100, time: 4 * time.Second},
		quick:        size{connections: 2_000, channels: 1, publishers: 1, pushes: 60, time: 3 * time.Second},
		measure:      measureFanOut,
	},
	{
		id:           "fanout-1k-16p",
		systems:      []string{"switchboard tcp", "switchboard ws", "switchboard memory", "nchan", "mosquitto", "centrifuge", "socket.io"},
		quickSystems: []string{"switchboard tcp", "switchboard memory", "nchan", "mosquitto", "centrifuge"},
		size:         size{connections: 1_000, channels: 1, publishers: 16, time: 2 * time.Second, window: 256},
		quick:        size{connections: 1_000, channels: 1, publishers: 16, time: time.Second, window: 256},
		measure:      measureBusyChannel,
	},
	{
		id: "single-10k",
		systems: []string{
			"switchboard tcp", "switchboard tcp queue", "switchboard memory", "switchboard memory queue",
			"nchan", "mosquitto", "centrifuge", "centrifuge memory", "socket.io",
		},
		quickSystems: []string{
			"switchboard tcp", "switchboard tcp queue", "switchboard memory", "switchboard memory queue",
			"nchan", "mosquitto", "centrifuge", "centrifuge memory",
		},
		size:    size{connections: 10_000, channels: 10_000, publishers: 32, time: 2 * time.Second, window: 2_000},
		quick:   size{connections: 2_000, channels: 2_000, publishers: 32, time: time.Second, window: 2_000},
		measure: measureSingle,
	},
	{
		id:      "batch-100",
		systems: []string{"switchboard tcp", "switchboard tcp queue", "switchboard memory", "switchboard memory queue"},
		size:    size{connections: 10_000, channels: 10_000, publishers: 32, batch: 100, time: 2 * time.Second, window: 10_000},
		quick:   size{connections: 2_000, channels: 2_000, publishers: 16, batch: 100, time: time.Second, window: 10_000},
		measure: measureSingle,
	},
	{
		id:      "latency",
		systems: []string{"switchboard tcp", "switchboard memory", "nchan", "mosquitto", "centrifuge"},
		// A quick run measures only latency-2k.
		size:    size{connections: 10_000, channels: 10_000, publishers: 32, time: 4 * time.Second},
		measure: measureLatency,
	},
	{
		id:      "latency-2k",
		systems: []string{"switchboard tcp", "switchboard memory", "nchan", "mosquitto", "centrifuge"},
		size:    size{connections: 10_000, channels: 10_000, publishers: 32, time: 5 * time.Second, rate: 2_000},
		quick:   size{connections: 2_000, channels: 2_000, publishers: 32, time: 2 * time.Second, rate: 2_000},
		measure: measureLatency,
	},
	{
		id:      "herd",
		systems: []string{"switchboard tcp", "switchboard ws", "switchboard memory", "centrifuge"},
		size:    size{connections: 15_000, channels: 15_000, publishers: 32, window: 2_000},
		quick:   size{connections: 3_000, channels: 3_000, publishers: 32, window: 2_000},
		measure: measureHerd,
	},
	{
		id:      "herd-webhooks",
		systems: []string{"switchboard tcp users", "switchboard tcp webhooks"},
		size:    size{connections: 15_000, channels: 15_000, publishers: 32, window: 2_000},
		measure: measureHerd,
	},
	{
		id:      "instances",
		systems: []string{"switchboard tcp"},
		xs:      []int{1, 2, 4, 8}, quickXs: []int{1, 4},
		size:    size{connections: 1_000, channels: 1, publishers: 1, pushes: 300, time: 4 * time.Second, window: 1},
		quick:   size{connections: 1_000, channels: 1, publishers: 1, pushes: 100, time: 3 * time.Second, window: 1},
		measure: measureInstances,
	},
	{
		id:      "beat",
		systems: []string{"switchboard tcp", "switchboard memory"},
		xs:      []int{1_000, 5_000, 15_000},
		size:    size{channels: 1, time: 4 * time.Second}, // two beats; a quick run is too short for such small figures
		measure: measureBeat,
	},
	{
		id:      "idle-cpu",
		systems: []string{"switchboard tcp", "switchboard memory", "centrifuge"},
		// The time is one heartbeat interval, so that each connection has exactly one heartbeat. A quick
		// run cannot shorten this.
		size:    size{connections: 15_000, channels: 1, time: 25 * time.Second},
		measure: measureIdleCPU,
	},
	{
		id: "state-update",
		systems: []string{
			"floor redis", "switchboard tcp", "switchboard tcp state", "switchboard tcp guarded",
			"switchboard memory", "switchboard memory state", "switchboard memory guarded",
			"centrifuge", "centrifuge map", "centrifuge map guarded", "centrifuge memory map",
		},
		quickSystems: []string{"floor redis", "switchboard tcp", "switchboard tcp state", "switchboard memory", "switchboard memory state", "centrifuge map"},
		size:         size{connections: 2_000, channels: 2_000, publishers: 32, fields: 64, time: 2 * time.Second, window: 2_000},
		quick:        size{connections: 500, channels: 500, publishers: 32, fields: 64, time: time.Second, window: 2_000},
		measure:      measureUpdates,
	},
	{
		id:           "state-page",
		systems:      []string{"floor redis", "switchboard tcp state", "switchboard memory state", "centrifuge map", "centrifuge memory map"},
		quickSystems: []string{"switchboard tcp state"},
		size:         size{connections: 1_000, channels: 1_000, publishers: 16, fields: 64, time: 2 * time.Second},
		quick:        size{connections: 200, channels: 200, publishers: 16, fields: 64, time: time.Second},
		measure:      measurePages,
	},
	{
		id:      "state-fanout",
		systems: []string{"switchboard tcp", "switchboard tcp state", "switchboard memory", "switchboard memory state", "centrifuge", "centrifuge map"},
		size:    size{connections: 1_000, channels: 1, publishers: 1, fields: 64, pushes: 300, time: 4 * time.Second},
		measure: filled(measureStateFanOut),
	},
	{
		id:           "state-fanout-16p",
		systems:      []string{"switchboard tcp", "switchboard tcp state", "switchboard memory", "switchboard memory state", "centrifuge", "centrifuge map"},
		quickSystems: []string{"switchboard tcp", "switchboard tcp state"},
		size:         size{connections: 1_000, channels: 1, publishers: 16, fields: 64, time: 2 * time.Second, window: 256},
		quick:        size{connections: 1_000, channels: 1, publishers: 16, fields: 64, time: time.Second, window: 256},
		measure:      filled(measureBusyChannel),
	},
	{
		id:           "cursors",
		systems:      []string{"switchboard tcp", "switchboard tcp state", "switchboard memory", "switchboard memory state", "centrifuge", "centrifuge map"},
		quickSystems: []string{"switchboard tcp", "switchboard tcp state", "centrifuge"},
		size:         size{connections: 50, channels: 1, publishers: 1, time: 5 * time.Second},
		quick:        size{connections: 50, channels: 1, publishers: 1, time: 2 * time.Second},
		measure:      measureCursors,
	},
	{
		id:           "state-memory",
		systems:      []string{"floor redis", "switchboard tcp state", "switchboard memory state", "centrifuge map", "centrifuge memory map"},
		quickSystems: []string{"switchboard tcp state"},
		size:         size{connections: 100, channels: 100, publishers: 16, fields: 1_000},
		quick:        size{connections: 20, channels: 20, publishers: 16, fields: 1_000},
		measure:      measureStateMemory,
	},
	{
		id: "state-idle", idleID: "state-idle",
		systems: []string{"switchboard tcp", "switchboard tcp state", "switchboard memory state", "centrifuge map"},
		// Not in a quick run: with fewer connections, their memory is less than the noise of a process.
		size:    size{connections: 10_000, channels: 1, publishers: 1, fields: 64},
		measure: filled(measureIdleConnections),
	},
	{
		id: "load", idleID: "load", onDemand: true,
		systems: loadSystems,
		size:    size{connections: 10_000, channels: 1, publishers: 1, pushes: 100, time: time.Minute},
		quick:   size{connections: 2_000, channels: 1, publishers: 1, pushes: 60, time: time.Minute},
		measure: measureLoad,
	},
	{
		id: "load-loop", onDemand: true,
		systems: loadSystems[2:],
		size:    size{connections: 10_000, channels: 1, publishers: 1, time: 4 * time.Second, window: 256},
		quick:   size{connections: 2_000, channels: 1, publishers: 1, time: 2 * time.Second, window: 256},
		measure: measureLoadLoop,
	},
	{
		id: "rooms-4", onDemand: true, rooms: true,
		systems: roomSystems,
		size:    size{connections: 2_000, channels: 500, time: 3 * time.Second},
		quick:   size{connections: 400, channels: 100, time: time.Second},
		measure: measureSmallRooms,
	},
	{
		id: "rooms-50", onDemand: true, rooms: true,
		systems: roomSystems,
		size:    size{connections: 1_000, channels: 20, time: 3 * time.Second},
		quick:   size{connections: 200, channels: 4, time: time.Second},
		measure: measureRooms,
	},
	{
		id: "rooms-empty", onDemand: true, rooms: true,
		systems: []string{"switchboard memory rooms", "switchboard redis rooms", "colyseus 50 ms"}, // patches do not matter
		size:    size{connections: 1_000, channels: 1_000},
		quick:   size{connections: 200, channels: 200},
		measure: measureEmptyRooms,
	},
	{
		id: "holds", onDemand: true, rooms: true,
		systems: roomSystems[:2],
		xs:      []int{1, 1_000}, quickXs: []int{1, 100},
		size:    size{connections: 1, channels: 1, publishers: 16, pushes: 9_000, time: 3 * time.Second},
		quick:   size{connections: 1, channels: 1, publishers: 16, pushes: 3_000, time: time.Second},
		measure: measureHolds,
	},
}
