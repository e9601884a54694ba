package main

import (
	"github.com/rs/zerolog"

	"switchboard/janitor"
	"switchboard/janitor/task"
	"switchboard/queue"
)

// checks returns what `janitor check` runs. A package whose records can differ adds its checks
// here.
func checks(q *queue.Redis, log zerolog.Logger) []task.Check {
	return []task.Check{janitor.CheckStates(q, log)}
}

// rounds returns the rounds of packages that the janitor does not know.
func rounds() []task.Round { return nil }
