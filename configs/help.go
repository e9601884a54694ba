package configs

import (
	"fmt"
	"slices"
	"strings"
)

// BrokerHelp returns the help of the broker.
func BrokerHelp() string { return brokerProgram.help() }

// JanitorHelp returns the help of the janitor.
func JanitorHelp() string { return janitorProgram.help() }

// textColumn is the column of the explanations.
const textColumn = 26

func (p *program) help() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nUsage: %s [flags]\n", p.intro, p.name)
	rows := p.rows()
	p.helpGroups(&b, rows, true)
	fmt.Fprintf(&b, "\nOther flags\n")
	helpItem(&b, "--config FILE", "a YAML file with settings; their names are those of the flags, with _ for -", "env "+p.env("config"))
	helpItem(&b, "-h, --help", "print this")
	helpItem(&b, "--version", "print the version")
	if slices.ContainsFunc(rows, func(r *row) bool { return !r.Flag }) {
		fmt.Fprintf(&b, "\nSettings without a flag, for the file (a dot separates section and name) and the environment\n")
		p.helpGroups(&b, rows, false)
	}
	fmt.Fprintf(&b, "\nA flag overrides the environment, the environment overrides the file, and the file overrides the default.\n")
	return b.String() + p.outro
}

// helpGroups writes the settings with a flag, or the others.
func (p *program) helpGroups(b *strings.Builder, rows []*row, flags bool) {
	title := ""
	for _, r := range rows {
		if r.Flag != flags {
			continue
		}
		if r.group != title {
			title = r.group
			fmt.Fprintf(b, "\n%s\n", title)
		}
		name := r.Key
		if flags {
			name = strings.TrimSpace("--" + r.FlagName() + " " + r.Arg)
		}
		last := "env " + p.env(r.Key)
		if text := r.DefaultText(); text != "" {
			last = text + "; " + last
		}
		helpItem(b, name, r.text, last)
	}
}

// helpItem writes a name and lines of text to the right of it. A long name has its own line.
func helpItem(b *strings.Builder, name string, lines ...string) {
	name = "  " + name
	if len(name) > textColumn-2 {
		name += "\n" + strings.Repeat(" ", textColumn)
	} else {
		name += strings.Repeat(" ", textColumn-len(name))
	}
	indent := "\n" + strings.Repeat(" ", textColumn)
	fmt.Fprintln(b, name+strings.ReplaceAll(strings.Join(lines, "\n"), "\n", indent))
}
