package testbed

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// A Program is a program of this repository that can run several times, one after another. Its
// fields may be changed while it does not run.
type Program struct {
	Name string   // in logs and errors
	Path string   // of the executable
	Args []string // Start adds --log-format
	Env  []string // settings, see Environ

	*Process            // the last one
	runs     []*Process // all of them
}

// Environ returns the environment of this process without the settings of the programs under test,
// and with more variables.
func Environ(more ...string) []string {
	own := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "SWITCHBOARD_") })
	return append(own, more...)
}

// Start starts the program.
func (p *Program) Start() error { return p.start() }

// start starts the program with more arguments.
func (p *Program) start(more ...string) error {
	cmd := exec.Command(p.Path, slices.Concat(p.Args, more, []string{"--log-format", "json"})...)
	cmd.Env = Environ(p.Env...)
	process, err := Start(p.Name, cmd, nil)
	if err == nil {
		p.Process, p.runs = process, append(p.runs, process)
	}
	return err
}

// Kill kills the program if it runs, and waits until it has ended.
func (p *Program) Kill() {
	if p.Process != nil {
		p.Process.Kill()
	}
}

// Log returns the logs of all runs.
func (p *Program) Log() string {
	var b strings.Builder
	for i, run := range p.runs {
		fmt.Fprintf(&b, "# start %d\n%s", i+1, run.Tail(0))
	}
	return b.String()
}
