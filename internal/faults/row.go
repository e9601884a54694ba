package main

import (
	"fmt"
	"time"
)

// row is one line of the ledger.
type row struct {
	Fault string `json:"fault"`
	Redis string `json:"redis"`
	About string `json:"fault_is"` // what the fault does
	counts
	OverSSE        kindCounts `json:"over_sse"`
	JavaScript     kindCounts `json:"javascript"`
	KeptInJS       int        `json:"javascript_kept"`
	Ghosts         int        `json:"ghosts"`
	Events         int        `json:"told"`
	RepeatedEvents int        `json:"told_twice"`
	Missing        int        `json:"missing"`
	Phantoms       int        `json:"phantoms"`
	Pushes         int        `json:"pushes"`
	stateCounts
	eraseCounts
	outages  `json:"-"`
	Seconds  float64          `json:"seconds"`
	Forgets  bool             `json:"redis_forgets"` // Redis loses its last writes under this fault
	Failure  string           `json:"failure,omitempty"`
	Red      []string         `json:"red,omitempty"` // the reasons; empty means ok
	Evidence evidence         `json:"evidence,omitempty"`
	Reasons  map[string]int   `json:"refusals,omitempty"`
	Logs     string           `json:"-"`       // directory of the kept logs
	Slowest  string           `json:"slowest"` // the client with the longest recovery
	Millis   map[string]int64 `json:"ms"`
}

// tolerance says which losses do not make a row red, because Redis itself causes them.
type tolerance struct {
	// forgets means that Redis loses its last writes under this fault. A push that was refused and
	// repeated may then arrive twice, because Redis forgot that it had stored the first attempt.
	forgets bool
	// loses means that these writes include acknowledged ones, because pushes are not durable.
	// Messages may then be lost and devices unknown, but each loss must be declared by a gap.
	loses bool
}

// redReasons returns the reasons why a row is red.
func (r row) redReasons(t tolerance) (why []string) {
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
	check(false, r.KeptInJS, "handled in JavaScript and kept")
	check(false, r.Ghosts, "ghosts")
	check(false, r.RepeatedEvents, "repeated presence events")
	check(false, r.Missing, "missing from presence")
	check(false, r.Phantoms, "phantoms in presence")
	check(t.forgets, r.LostChanges, "lost changes")
	check(false, r.LostDurable, "lost durable changes")
	check(false, r.EndedEarly, "fields that ended early")
	check(false, r.MissedChanges, "missed changes")
	check(false, r.Diverged, "diverged fields")
	check(false, r.Oversold, "oversold")
	check(false, r.GhostFields, "ghost fields")
	check(false, r.WrongConflicts, "wrong conflicts")
	check(false, r.Late, "late expiries")
	check(t.loses, r.LostErasures, "erasures of messages that the store did not know")
	check(false, r.Unreported, "unreported erasures")
	check(t.forgets, r.RepeatedReport, "repeated reports of erasures")
	check(t.loses, r.Revealed, "erased messages that were shown")
	check(false, r.MissedByReader, "messages that a reader missed")
	check(false, r.Unrecovered, "clients without a message after the fault")
	return why
}

func (r row) verdict() string {
	if len(r.Red) > 0 {
		return "RED"
	}
	return "ok"
}

// seconds formats a duration for the table.
func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// millis formats a short duration for the table.
func millis(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }
