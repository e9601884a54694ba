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
	settings := p.settings()
	p.helpGroups(&b, settings, true)
	fmt.Fprintf(&b, "\nOther flags\n")
	helpItem(&b, "--config FILE", "a YAML file with settings; their names are those of the flags, with _ for -", "env "+p.env("config"))
	helpItem(&b, "-h, --help", "print this")
	helpItem(&b, "--version", "print the version")
	if slices.ContainsFunc(settings, func(s *setting) bool { return !s.flag }) {
		fmt.Fprintf(&b, "\nSettings without a flag, for the file (a dot separates section and name) and the environment\n")
		p.helpGroups(&b, settings, false)
	}
	fmt.Fprintf(&b, "\nA flag overrides the environment, the environment overrides the file, and the file overrides the default.\n")
	return b.String() + p.outro
}

// helpGroups writes the settings with a flag, or the others.
func (p *program) helpGroups(b *strings.Builder, settings []*setting, flags bool) {
	title := ""
	for _, s := range settings {
		if s.flag != flags {
			continue
		}
		if s.group != title {
			title = s.group
			fmt.Fprintf(b, "\n%s\n", title)
		}
		name := s.key
		if flags {
			name = strings.TrimSpace("--" + s.flagName() + " " + s.arg)
		}
		last := "env " + p.env(s.key)
		if text := s.defaultText(); text != "" {
			last = text + "; " + last
		}
		helpItem(b, name, s.text, last)
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
