package main

import (
	"os"
	"runtime"
	"strings"
	"time"

	"switchboard/bench/system"
)

// result is the result of a run, which --json prints. Times per connection, delivery or push are
// in microseconds, sizes in bytes.
type result struct {
	Transport   string `json:"transport"`
	Store       string `json:"store"`
	Connections int    `json:"connections"`
	Channels    int    `json:"channels"`
	Publishers  int    `json:"publishers"`
	Size        int    `json:"payload_bytes"`
	CPUs        int    `json:"cpus"`
	LoadBefore  string `json:"load_average_before"` // over 1, 5 and 15 minutes: other load of the machine

	Floor  *system.FloorReport `json:"floor,omitempty"`
	Setup  *setupResult        `json:"setup,omitempty"`
	Memory *memoryResult       `json:"memory,omitempty"`
	Phases []phaseResult       `json:"phases,omitempty"`

	Valid  bool     `json:"counts"`           // every connection received every message exactly once, in order
	Wrong  int      `json:"wrong"`            // number of faults
	Faults []string `json:"faults,omitempty"` // descriptions of the first faults
	Error  string   `json:"error,omitempty"`
}

type setupResult struct {
	Seconds       float64 `json:"seconds"`
	CPUPerConnect float64 `json:"server_cpu_us_per_connect"`
	RedisCPU      float64 `json:"redis_cpu_us_per_connect,omitempty"`
}

type memoryResult struct {
	Empty         int64     `json:"rss_before"`
	Full          int64     `json:"rss_idle"`
	PerConnection float64   `json:"rss_per_connection"`
	Settled       bool      `json:"settled"` // the readings stopped changing
	Go            *goResult `json:"go,omitempty"`
}

// goResult is the memory in use by the Go runtime per connection, after a garbage collection.
type goResult struct {
	HeapPerConnection   float64 `json:"heap_per_connection"`
	StacksPerConnection float64 `json:"stacks_per_connection"`
}

type phaseResult struct {
	Name           string  `json:"name"`
	Pushes         int64   `json:"pushes"`
	Deliveries     int64   `json:"deliveries"`
	Seconds        float64 `json:"seconds"`
	PerRead        float64 `json:"messages_per_read"` // at the subscribers; shows how many messages share a write
	CPUPerDelivery float64 `json:"server_cpu_us_per_delivery"`
	FloorRatio     float64 `json:"floor_ratio,omitempty"`
	CPUPerPush     float64 `json:"server_cpu_us_per_push"`
	RedisCPU       float64 `json:"redis_cpu_us_per_push,omitempty"`
	BenchCPU       float64 `json:"bench_cpu_us_per_delivery"` // of the load generator
}

func newResult(o options) result {
	store := "memory"
	switch {
	case o.redis != "":
		store = "redis"
	case o.pid != 0:
		store = "of the running broker"
	}
	load, _ := os.ReadFile("/proc/loadavg") // informational only
	return result{
		Transport: o.transport, Store: store, Connections: o.connections, Channels: o.channels,
		Publishers: o.publishers, Size: o.size, CPUs: runtime.NumCPU(),
		LoadBefore: strings.Join(strings.Fields(string(load) + " - - -")[:3], " "),
	}
}

func newSetupResult(before, after sample, n float64) *setupResult {
	return &setupResult{
		Seconds: after.at.Sub(before.at).Seconds(), CPUPerConnect: micros(after.server-before.server) / n,
		RedisCPU: micros(after.redis-before.redis) / n,
	}
}

func newPhaseResult(name string, before, after sample, floor *system.FloorReport) phaseResult {
	pushes, deliveries := after.pushes-before.pushes, after.received-before.received
	server := micros(after.server - before.server)
	p := phaseResult{
		Name: name, Pushes: pushes, Deliveries: deliveries, Seconds: after.at.Sub(before.at).Seconds(),
		PerRead:        float64(deliveries) / float64(max(1, after.reads-before.reads)),
		CPUPerDelivery: server / float64(max(1, deliveries)), CPUPerPush: server / float64(max(1, pushes)),
		RedisCPU: micros(after.redis-before.redis) / float64(max(1, pushes)),
		BenchCPU: micros(after.bench-before.bench) / float64(max(1, deliveries)),
	}
	if floor != nil && floor.CPUPerWrite > 0 {
		p.FloorRatio = p.CPUPerDelivery / floor.CPUPerWrite
	}
	return p
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
