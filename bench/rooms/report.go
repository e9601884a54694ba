package main

import (
	"fmt"
	"io"
)

func (r *run) report(w io.Writer, m machine) {
	for _, f := range r.figures {
		fmt.Fprintf(w, "%-22s %-28s %12.2f\n", f.contender, f.metric, f.value)
	}
}

type machine struct{}

func beginMachine() machine { return machine{} }
