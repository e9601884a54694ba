package configs

import (
	"fmt"
	"slices"
	"strings"
)

// BrokerHelp is what the broker prints for --help.
func BrokerHelp() string { return brokerProgram.help() }

// JanitorHelp is what the janitor prints for --help.
func JanitorHelp() string { return janitorProgram.help() }

// textColumn is where the explanations begin.
const textColumn = 26

func (p *program) help() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nUsage: %s [flags]\n", p.intro, p.name)
	settings := p.settings()
	p.helpGroups(&b, settings, true)
	fmt.Fprintf(&b, "\nOther flags\n")
	helpItem(&b, "--config FILE", "a YAML file with any of these settings, under the names of the flags with _ for -", "env "+p.env("config"))
	helpItem(&b, "-h, --help", "print this")
	helpItem(&b, "--version", "print the version")
	if slices.ContainsFunc(settings, func(s *setting) bool { return !s.flag }) {
		fmt.Fprintf(&b, "\nSettings without a flag, for the file (a dot is a level of it) and the environment (a list with commas)\n")
		p.helpGroups(&b, settings, false)
	}
	fmt.Fprintf(&b, "\nA flag beats the environment, the environment beats the file, the file beats the default.\n")
	return b.String() + p.outro
}

// helpGroups writes the settings with a flag, or those without.
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
		if fallback := s.fallback(); fallback != "" {
			last = fallback + "; " + last
		}
		helpItem(b, name, s.text, last)
	}
}

// helpItem writes a name and behind it lines of text; a long name has a line of its own.
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
