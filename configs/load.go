package configs

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/providers/posflag"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"
)

var (
	// ErrHelp is returned when the arguments ask for help: see [BrokerHelp] and [JanitorHelp].
	ErrHelp = errors.New("help was asked for")
	// ErrVersion is returned when the arguments ask for the version.
	ErrVersion = errors.New("the version was asked for")
)

// UsageError says that the command line is wrong, whatever else there is.
type UsageError struct{ err error }

func (e UsageError) Error() string { return e.err.Error() }

// Unwrap gives the cause.
func (e UsageError) Unwrap() error { return e.err }

// program is one of the two commands.
type program struct {
	name     string
	intro    string
	groups   []group
	outro    string
	env      func(key string) string // the variable of a key
	owns     func(name string) bool  // whether a variable can only be meant for this program
	defaults any
}

type group struct {
	title    string
	settings []about
}

// settings puts the descriptions and the fields together, in the order of the help.
func (p *program) settings() []*setting {
	var all []*setting
	known := fields(reflect.ValueOf(p.defaults), "")
	for _, g := range p.groups {
		for _, a := range g.settings {
			def := known[a.key]
			all = append(all, &setting{about: a, group: g.title, typ: def.Type(), def: def})
		}
	}
	return all
}

// load writes what is set anywhere into target, which holds the defaults. unknown are the
// variables that only this program could have read, and does not.
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
	k := koanf.New(".")
	if path != "" {
		if err := k.Load(file.Provider(path), strictYAML(settings)); err != nil {
			return nil, fmt.Errorf("%s: %w", path, withoutPath(err))
		}
	}
	if variables.err != nil {
		return nil, variables.err
	}
	if err := k.Load(variables.provider, nil); err != nil {
		return nil, err
	}
	if err := k.Load(posflag.ProviderWithFlag(flags, ".", nil, flagValue), nil); err != nil {
		return nil, err
	}
	return variables.unknown, k.Unmarshal("", target)
}

// variables is what the environment says.
type variables struct {
	provider   *env.Env
	configFile string
	unknown    []string
	err        error // of the first value of a wrong type
}

func (p *program) readEnv(settings []*setting, environ []string) *variables {
	byName := map[string]*setting{}
	for _, s := range settings {
		byName[p.env(s.key)] = s
	}
	v := &variables{}
	values := map[string]any{} // parsed once; the provider only nests them
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
			values[name] = value
		}
	}
	v.provider = env.Provider(".", env.Opt{
		Prefix:      envPrefix,
		EnvironFunc: func() []string { return environ },
		TransformFunc: func(name, _ string) (string, any) {
			value, set := values[name]
			if !set {
				return "", nil
			}
			return byName[name].key, value
		},
	})
	return v
}

const envPrefix = "SWITCHBOARD_"

func envName(key string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// isServiceLink knows the variables that Kubernetes sets for a Service called switchboard.
func isServiceLink(name string) bool {
	return strings.Contains(name, "_SERVICE_") || strings.Contains(name, "_PORT")
}

func flagValue(f *pflag.Flag) (string, any) {
	if v, ok := f.Value.(*flagText); ok {
		return v.setting.key, v.value
	}
	return "", nil // --config, --help and --version are no settings
}
