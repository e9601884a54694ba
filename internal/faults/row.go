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
	Ghosts    int `json:"ghosts"`
	Told      int `json:"told"`
	ToldTwice int `json:"told_twice"`
	Missing   int `json:"missing"`
	Phantoms  int `json:"phantoms"`
	Pushes    int `json:"pushes"`
	pauses    `json:"-"`
	Seconds   float64          `json:"seconds"`
	Forgets   bool             `json:"redis_forgets"` // its last writes, by its nature
	Failure   string           `json:"failure,omitempty"`
	Red       []string         `json:"red,omitempty"` // why, empty for ok
	Evidence  evidence         `json:"evidence,omitempty"`
	Reasons   map[string]int   `json:"refusals,omitempty"`
	Logs      string           `json:"-"`       // the directory of the kept logs, on this machine
	Slowest   string           `json:"slowest"` // the client of recover_max
	Millis    map[string]int64 `json:"ms"`
}

// tolerance is what a row may show without being red, for reasons that lie in Redis.
type tolerance struct {
	// forgets: Redis loses its last writes by its nature. A push that was refused, and made again, may
	// arrive twice then: Redis forgot that it had stored it the first time.
	forgets bool
	// loses: acknowledged writes too. Messages may be lost and devices unknown, but each loss is told.
	loses bool
}

// objections say why a row is red.
func (r row) objections(t tolerance) (why []string) {
	check := func(tolerated bool, n int, name string) {
		if n > 0 && !tolerated {
			why = append(why, fmt.Sprintf("%d %s", n, name))
		}
	}
	if r.Failure != "" {
		why = append(why, r.Failure)
	}
	check(t.loses, r.Lost, "lost")
	check(false, r.Undeclared, "undeclared")
	check(false, r.Duplicated, "duplicated")
	check(t.forgets, r.Again, "again")
	check(false, r.Disorder, "in disorder")
	check(false, r.Strange, "strange")
	check(t.loses, r.Unnamed, "unnamed")
	check(false, r.Ghosts, "ghosts")
	check(false, r.ToldTwice, "comings and goings told twice")
	check(false, r.Missing, "missing from presence")
	check(false, r.Phantoms, "phantoms in presence")
	check(false, r.Unrecovered, "clients that got nothing after the fault")
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
