package configs

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
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
	defaults any
}

type group struct {
	title    string
	settings []spec
}

// settings returns all settings in the order of the help.
func (p *program) settings() []*setting {
	var all []*setting
	known := fields(reflect.ValueOf(p.defaults), "")
	for _, g := range p.groups {
		for _, a := range g.settings {
			def := known[a.key]
			all = append(all, &setting{spec: a, group: g.title, typ: def.Type(), def: def})
		}
	}
	return all
}

// values are the settings of one source by key. Each was returned by setting.parse or setting.read.
type values map[string]any

// load reads all sources into target, which points to the defaults. unknown are the environment
// variables that belong to this program but to no setting.
func (p *program) load(target any, args, environ []string) (unknown []string, err error) {
	settings := p.settings()
	flags, path, err := p.parseFlags(settings, args)
	if err != nil {
		return nil, err
	}
	variables := p.readEnv(settings, environ)
	if path == "" {
		path = variables.configFile
	}
	var inFile values
	if path != "" {
		if inFile, err = readFileValues(settings, path); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	if variables.err != nil {
		return nil, variables.err
	}
	into := fields(reflect.ValueOf(target).Elem(), "")
	for _, source := range []values{inFile, variables.values, flags} { // later sources override earlier ones
		for key, value := range source {
			store(into[key], value)
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

func (p *program) readEnv(settings []*setting, environ []string) *variables {
	byName := map[string]*setting{}
	for _, s := range settings {
		byName[p.env(s.key)] = s
	}
	v := &variables{values: values{}}
	for _, pair := range environ {
		name, text, _ := strings.Cut(pair, "=")
		s, known := byName[name]
		switch {
		case text == "" || !strings.HasPrefix(name, envPrefix):
		case name == p.env("config"):
			v.configFile = text
		case !known:
			if p.owns(name) && !isServiceLink(name) {
				v.unknown = append(v.unknown, name)
			}
		default:
			value, err := s.parse(text)
			if err != nil && v.err == nil {
				v.err = fmt.Errorf("%s: %w", name, err)
			}
			v.values[s.key] = value
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
