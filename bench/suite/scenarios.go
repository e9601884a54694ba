package main

import (
	"context"
	"time"
)

// scenario is one kind of work, and who does it.
type scenario struct {
	id      string
	also    string   // id of what is measured on the way, with the same connections
	systems []string // contenders
	quickly []string // those of systems that a quick run measures; nil for all
	xs      []int    // of a curve: a measurement each
	quickXs []int
	size    size // in a whole run
	quick   size // in a quick one; zero leaves it out
	measure func(ctx context.Context, t *trial) error
}

// size is how much.
type size struct {
	connections, channels, publishers int

	batch  int           // pushes in one call; 0 for single ones
	pushes int           // one at a time, at most
	time   time.Duration // of a loop, or of a rest; behind it no push begins
	window int           // pushes that may be ahead of the subscribers
	rate   float64       // of an open loop, pushes per second; 0 for half of what centrifuge does
}

// scenarios are run in this order in each round: latency needs the rates of single.
var scenarios = []scenario{
	{
		id: "fanout-10k", also: "idle",
		systems: []string{"floor", "switchboard tcp", "switchboard ws", "switchboard http", "switchboard memory", "nchan", "mosquitto", "mosquitto qos 0", "centrifuge", "socket.io"},
		quickly: []string{"floor", "switchboard tcp", "switchboard ws", "switchboard memory", "nchan", "mosquitto", "centrifuge"},
		size:    size{connections: 10_000, channels: 1, publishers: 1, pushes: 100, time: 4 * time.Second},
		quick:   size{connections: 2_000, channels: 1, publishers: 1, pushes: 60, time: 3 * time.Second},
		measure: measureFanOut,
	},
	{
		id:      "fanout-1k-16p",
		systems: []string{"switchboard tcp", "switchboard ws", "switchboard memory", "nchan", "mosquitto", "centrifuge", "socket.io"},
		quickly: []string{"switchboard tcp", "switchboard memory", "nchan", "mosquitto", "centrifuge"},
		size:    size{connections: 1_000, channels: 1, publishers: 16, time: 2 * time.Second, window: 256},
		quick:   size{connections: 1_000, channels: 1, publishers: 16, time: time.Second, window: 256},
		measure: measureBusyChannel,
	},
	{
		id: "single-10k",
		systems: []string{
			"switchboard tcp", "switchboard tcp queue", "switchboard memory", "switchboard memory queue",
			"nchan", "mosquitto", "centrifuge", "centrifuge memory", "socket.io",
		},
		quickly: []string{
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
		// A quick run has the one at a moderate load instead.
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
		size:    size{channels: 1, time: 4 * time.Second}, // two beats; two rounds of a quick run say nothing of so little
		measure: measureBeat,
	},
	{
		id:      "idle-cpu",
		systems: []string{"switchboard tcp", "switchboard memory", "centrifuge"},
		// One interval of the heartbeats: whatever moment it begins at, each connection has one. There is no
		// quick way to that.
		size:    size{connections: 15_000, channels: 1, time: 25 * time.Second},
		measure: measureIdleCPU,
	},
}
