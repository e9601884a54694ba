package main

import (
	"fmt"
	"os"
	"regexp"

	"switchboard/bench/rooms"
	"switchboard/bench/system"
)

// contender is a system in one configuration, with the name in the report.
type contender struct {
	name           string
	system         system.System
	transport      string
	redis          bool // it keeps its messages in Redis, otherwise in the memory of its process
	state          bool // its publishers change fields, and its subscribers receive the state
	maxConnections int  // 0 means no limit
}

// floorCommand as the first argument makes this program the floor's writer process.
const floorCommand = "floor-writer"

// contenders returns all contenders by name. Peers that must be built are built in dir.
func contenders(broker, dir string) map[string]contender {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	all := map[string]contender{}
	for _, c := range []contender{
		{name: "floor", system: &system.Floor{Command: []string{self, floorCommand}, Channel: channelName(0)}, transport: "tcp"},
		{name: "floor ws", system: &system.Floor{Command: []string{self, floorCommand}, Channel: channelName(0)}, transport: "ws"},
		{name: "switchboard tcp", system: &system.Switchboard{Program: broker}, transport: "tcp", redis: true},
		{name: "switchboard ws", system: &system.Switchboard{Program: broker}, transport: "ws", redis: true},
		{name: "switchboard http", system: &system.Switchboard{Program: broker}, transport: "http", redis: true},
		{name: "switchboard sse", system: &system.Switchboard{Program: broker}, transport: "sse", redis: true},
		{name: "switchboard tcp queue", system: &system.Switchboard{Program: broker, Queue: true}, transport: "tcp", redis: true},
		{name: "switchboard memory", system: &system.Switchboard{Program: broker}, transport: "tcp"},
		{name: "switchboard memory ws", system: &system.Switchboard{Program: broker}, transport: "ws"},
		{name: "switchboard memory http", system: &system.Switchboard{Program: broker}, transport: "http"},
		{name: "switchboard memory queue", system: &system.Switchboard{Program: broker, Queue: true}, transport: "tcp"},
		{name: "switchboard tcp users", system: &system.Users{Switchboard: system.Switchboard{Program: broker}}, transport: "tcp", redis: true},
		{name: "switchboard tcp webhooks", system: &system.Users{Switchboard: system.Switchboard{Program: broker}, Webhooks: true}, transport: "tcp", redis: true},
		{name: "switchboard tcp state", system: &system.Switchboard{Program: broker, State: true}, transport: "tcp", redis: true, state: true},
		{name: "switchboard tcp guarded", system: &system.Switchboard{Program: broker, State: true, Guarded: true}, transport: "tcp", redis: true, state: true},
		{name: "switchboard memory state", system: &system.Switchboard{Program: broker, State: true}, transport: "tcp", state: true},
		{name: "switchboard memory guarded", system: &system.Switchboard{Program: broker, State: true, Guarded: true}, transport: "tcp", state: true},
		{name: "floor redis", system: &system.RedisFloor{}, redis: true, state: true},
		{name: "nchan", system: &system.Nchan{}},
		{name: "mosquitto", system: &system.Mosquitto{QoS: 1}},
		{name: "mosquitto qos 0", system: &system.Mosquitto{}},
		{name: "centrifuge", system: &system.Centrifuge{Dir: dir}, redis: true},
		{name: "centrifuge memory", system: &system.Centrifuge{Dir: dir, Memory: true}},
		{name: "centrifuge map", system: &system.Centrifuge{Dir: dir, Map: true}, redis: true, state: true},
		{name: "centrifuge map guarded", system: &system.Centrifuge{Dir: dir, Map: true, Guarded: true}, redis: true, state: true},
		{name: "centrifuge memory map", system: &system.Centrifuge{Dir: dir, Map: true, Memory: true}, state: true},
		{name: "socket.io", system: &system.SocketIO{}, redis: true},
		{name: "switchboard memory rooms", system: &system.Switchboard{Program: broker, Env: rooms.Settings}, transport: "http"},
		{name: "switchboard redis rooms", system: &system.Switchboard{Program: broker, Env: rooms.Settings}, transport: "http", redis: true},
		{name: "colyseus each", system: &system.Colyseus{Patches: "each"}},
		{name: "colyseus 50 ms", system: &system.Colyseus{Patches: "50"}},
	} {
		all[c.name] = c
	}
	return all
}

// channelName returns the name of channel i. If each client has its own channel, the client has the
// same name.
func channelName(i int) string { return fmt.Sprint("bench-", i) }

// isFloor reports whether the contender only calls write(2). It has one channel, and its memory is
// not measured.
func (c contender) isFloor() bool {
	_, ok := c.system.(*system.Floor)
	return ok
}

// matchingScenarios returns the scenarios whose id matches pattern, or those of the report if
// pattern is nil.
func matchingScenarios(pattern *regexp.Regexp) (some []scenario) {
	for _, sc := range scenarios {
		if pattern == nil && !sc.onDemand || pattern != nil && (pattern.MatchString(sc.id) || sc.idleID != "" && pattern.MatchString(sc.idleID)) {
			some = append(some, sc)
		}
	}
	return some
}
