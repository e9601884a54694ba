// Package task describes what packages give to a janitor to do: checks of their records, and rounds
// over them. The janitor does not import these packages, and they import only this one. The command
// passes the checks to [Run], and the rounds to janitor.Options.
package task

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Apart is the usual value of Check.Apart.
const Apart = 10 * time.Second

// Finding is a difference between records. Findings are compared with ==. So a Problem must not
// have a number that grows while the problem stays, like an age.
type Finding struct {
	Subject string // what the records belong to, like a channel
	Problem string // what is wrong, in plain words, with the names of keys
	Remedy  string // what an operator can do; "" if there is nothing to do by hand
}

// String returns the finding in one line.
func (f Finding) String() string {
	line := f.Subject + ": " + f.Problem
	if f.Remedy != "" {
		line += "; remedy: " + f.Remedy
	}
	return line
}

// Check compares records with each other.
type Check struct {
	// Name is unique, like "states".
	Name string
	// Find returns what is wrong now. It must not change anything. Findings that it returns with an
	// error are ignored.
	Find func(ctx context.Context) ([]Finding, error)
	// Apart is the time between two calls of Find: only what both return counts. Set it if several
	// steps change the records, or if a process corrects them within that time. Zero means that Find
	// is called once.
	Apart time.Duration
}

// Round is work that a janitor repeats. If several janitors run, only one of them does it. While
// another one takes over, both may do it at the same time. A janitor may be killed during a round,
// so another round must be able to continue the work.
type Round struct {
	// Name is unique, like "holds". It is the label "round" of the janitor's metrics.
	Name string
	// Every is the interval. It must be positive.
	Every time.Duration
	// Calm is the interval while there is no sign that the store has lost something. After a restart
	// or a failover of the store, and after the start of the janitor, the interval is Every until the
	// rounds have looked at everything, see Parts. Zero means Every.
	Calm time.Duration
	// Parts returns how many rounds must follow the first one to look at everything. Nil means one.
	Parts func() int
	// Do makes one round. It returns how many things it changed, also with an error. After an error
	// the next round tries again. A janitor with DryRun does not call it.
	Do func(ctx context.Context) (changed int, err error)
}

// Validate returns an error if a check cannot be run.
func (c Check) Validate() error {
	switch {
	case c.Name == "":
		return errors.New("a check has no name")
	case c.Find == nil:
		return fmt.Errorf("check %s: Find must be set", c.Name)
	case c.Apart < 0:
		return fmt.Errorf("check %s: Apart must not be negative", c.Name)
	}
	return nil
}

// Validate returns an error if a round cannot be run.
func (r Round) Validate() error {
	switch {
	case r.Name == "":
		return errors.New("a round has no name")
	case r.Do == nil:
		return fmt.Errorf("round %s: Do must be set", r.Name)
	case r.Every <= 0:
		return fmt.Errorf("round %s: Every must be positive", r.Name)
	case r.Calm < 0:
		return fmt.Errorf("round %s: Calm must not be negative", r.Name)
	}
	return nil
}
