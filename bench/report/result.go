package report

import "time"

// Result is one number of one scenario, once per round.
type Result struct {
	Scenario string    `json:"scenario"`    // id, like "fanout-10k"
	System   string    `json:"system"`      // "switchboard tcp", "nchan"
	Metric   string    `json:"metric"`      // id, like "cpu_us_per_delivery"
	X        float64   `json:"x,omitempty"` // of a curve: percentile, instances, connections
	Values   []float64 `json:"values"`      // by round
}

// Run is everything that one run of the suite found.
type Run struct {
	Commit   string            `json:"commit"`
	Machine  string            `json:"machine"`
	Go       string            `json:"go"`
	Redis    string            `json:"redis"`
	Date     string            `json:"date"`
	Took     time.Duration     `json:"took_ns"`
	Rounds   int               `json:"rounds"`
	Quick    bool              `json:"quick"`
	Stolen   []float64         `json:"stolen_percent,omitempty"` // by round: what the host took of the processors
	Results  []Result          `json:"results"`
	Invalid  []string          `json:"invalid,omitempty"`  // measurements that did not count, and why
	Versions map[string]string `json:"versions,omitempty"` // by system
	Notes    map[string]string `json:"notes,omitempty"`    // by system: how it was configured
}
