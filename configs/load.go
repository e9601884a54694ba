package configs

import (
	"errors"
	"fmt"
	"strings"

	"switchboard/internal/setting"
)

var (
	// ErrHelp is returned if the arguments request help: see [BrokerHelp] and [JanitorHelp].
	ErrHelp = errors.New("help was requested")
	// ErrVersion is returned if the arguments request the version.
	ErrVersion = errors.New("the version was requested")
)

// UsageError is an error in the command line. It takes precedence over other errors.
type UsageError struct{ err error }

func (e UsageError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e UsageError) Unwrap() error { return e.err }

// program is one of the two commands.
type program struct {
	name     string
	intro    string
	groups   []group
	outro    string
	env      func(key string) string // returns the environment variable of a key
	owns     func(name string) bool  // reports whether to warn of an unknown variable with this name
	defaults any                     // points to a struct
}

// group is a part of the help. keys are its settings, separated by spaces. limits.* are those of
// the section that no group names, in the order of the fields.
type group struct{ title, keys string }

// rows returns all settings in the order of the help.
func (p *program) rows() (all []*row) {
	settings := setting.Of(p.defaults)
	named := map[string]bool{}
	for _, g := range p.groups {
		for key := range strings.FieldsSeq(g.keys) {
			named[key] = true
		}
	}
	for _, g := range p.groups {
		for key := range strings.FieldsSeq(g.keys) {
			section, isSection := strings.CutSuffix(key, "*")
			for _, s := range settings {
				if s.Key == key || isSection && !named[s.Key] && strings.HasPrefix(s.Key, section) {
					all = append(all, newRow(s, g.title))
				}
			}
		}
	}
	return all
}

// values are the settings of one source by key. Each was returned by row.parse or row.read.
type values map[string]any

// load reads all sources into target, which points to the defaults. unknown are the environment
// variables that belong to this program but to no setting.
func (p *program) load(target any, args, environ []string) (unknown []string, err error) {
	rows := p.rows()
	flags, path, err := p.parseFlags(rows, args)
	if err != nil {
		return nil, err
	}
	variables := p.readEnv(rows, environ)
	if path == "" {
		path = variables.configFile
	}
	var inFile values
	if path != "" {
		if inFile, err = readFileValues(rows, path); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	if variables.err != nil {
		return nil, variables.err
	}
	for _, s := range setting.Of(target) {
		for _, source := range []values{inFile, variables.values, flags} { // later sources override earlier ones
			if value, given := source[s.Key]; given {
				s.Set(value)
			}
		}
	}
	return variables.unknown, nil
}

// variables are the settings in the environment.
type variables struct {
	values     values
	configFile string
	unknown    []string
	err        error // for the first value of a wrong type
}

func (p *program) readEnv(rows []*row, environ []string) *variables {
	byName := map[string]*row{}
	for _, r := range rows {
		byName[p.env(r.Key)] = r
	}
	v := &variables{values: values{}}
	for _, pair := range environ {
		name, text, _ := strings.Cut(pair, "=")
		r, known := byName[name]
		switch {
		case text == "" || !strings.HasPrefix(name, envPrefix):
		case name == p.env("config"):
			v.configFile = text
		case !known:
			if p.owns(name) && !isServiceLink(name) {
				v.unknown = append(v.unknown, name)
			}
		default:
			value, err := r.parse(text)
			if err != nil && v.err == nil {
				v.err = fmt.Errorf("%s: %w", name, err)
			}
			v.values[r.Key] = value
		}
	}
	return v
}

const envPrefix = "SWITCHBOARD_"

func envName(key string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// isServiceLink reports whether Kubernetes sets the variable for a Service called switchboard.
func isServiceLink(name string) bool {
	return strings.Contains(name, "_SERVICE_") || strings.Contains(name, "_PORT")
}

// isClientVariable reports whether the commands that call a broker read the variable.
func isClientVariable(name string) bool {
	switch strings.TrimPrefix(name, envPrefix) {
	case "URL", "KEY", "KEY_FILE", "TOKEN", "TOKEN_FILE", "CA_FILE", "PROFILE", "PROFILES":
		return true
	}
	return false
}
