package report

import "time"

// Result holds the values of one metric of one system in one scenario, one value per round.
type Result struct {
	Scenario string    `json:"scenario"`    // id, like "fanout-10k"
	System   string    `json:"system"`      // "switchboard tcp", "nchan"
	Metric   string    `json:"metric"`      // id, like "cpu_us_per_delivery"
	X        float64   `json:"x,omitempty"` // position on a curve: percentile, brokers or connections
	Values   []float64 `json:"values"`      // by round
}

// Run holds all results of one run of the suite.
type Run struct {
	Commit   string            `json:"commit"`
	Machine  string            `json:"machine"`
	Go       string            `json:"go"`
	Redis    string            `json:"redis"`
	Date     string            `json:"date"`
	Took     time.Duration     `json:"took_ns"`
	Rounds   int               `json:"rounds"`
	Quick    bool              `json:"quick"`
	Stolen   []float64         `json:"stolen_percent,omitempty"` // CPU steal by round
	Results  []Result          `json:"results"`
	Invalid  []string          `json:"invalid,omitempty"`  // measurements that did not count, with the reason
	Versions map[string]string `json:"versions,omitempty"` // by system
	Notes    map[string]string `json:"notes,omitempty"`    // configuration by system
}
