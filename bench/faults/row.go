package main

import (
	"fmt"
	"time"
)

// row is one line of the ledger.
type row struct {
	Fault  string `json:"fault"`
	Redis  string `json:"redis"`
	Driven string `json:"fault_is"` // what the fault does
	counts
	Ghosts   int `json:"ghosts"`
	Pushes   int `json:"pushes"`
	pauses   `json:"-"`
	Seconds  float64          `json:"seconds"`
	MayLose  bool             `json:"redis_may_lose"` // acknowledged writes, by its nature
	Failure  string           `json:"failure,omitempty"`
	Red      []string         `json:"red,omitempty"` // why, empty for ok
	Evidence evidence         `json:"evidence,omitempty"`
	Reasons  map[string]int   `json:"refusals,omitempty"`
	Logs     string           `json:"logs,omitempty"`
	Slowest  string           `json:"slowest"` // the client of recover_max
	Millis   map[string]int64 `json:"ms"`
}

// objections say why a row is red. Where Redis itself may lose acknowledged writes, messages
// may be lost, be pushed again under a new id, and find fewer devices known; but each loss
// is told.
func (r row) objections(mayLose bool) (why []string) {
	check := func(n int, name string) {
		if n > 0 {
			why = append(why, fmt.Sprintf("%d %s", n, name))
		}
	}
	if r.Failure != "" {
		why = append(why, r.Failure)
	}
	check(r.Undeclared, "undeclared")
	check(r.Disorder, "disorder")
	check(r.Ghosts, "ghosts")
	check(r.Unrecovered, "clients got nothing after the fault")
	if !mayLose {
		check(r.Lost, "lost")
		check(r.Duplicated, "duplicated")
		check(r.Strange, "strange")
		check(r.Unnamed, "unnamed")
	}
	return why
}

func (r row) verdict() string {
	if len(r.Red) > 0 {
		return "RED"
	}
	return "ok"
}

// seconds is a duration as the table shows it.
func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
