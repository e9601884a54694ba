package main

import (
	"os"
	"path/filepath"
	"strings"

	"switchboard/cmd/internal/profile"
	"switchboard/internal/nearest"
)

// defaultURL is the address of a broker with the default settings.
const defaultURL = "http://127.0.0.1:8080"

// setting is a setting of the command line that a flag, variables and a profile can give.
type setting struct {
	flag     string // without dashes
	variable string // "" for none
	secret   string // the variable that holds a secret itself, while variable names a file; "" for none
	file     bool   // the value is the path of a file
	fallback string
	given    func(*app) string            // the flag
	of       func(profile.Profile) string // the profile
}

// The settings. docs/cli.md describes their sources.
var (
	urlSetting = setting{
		flag: "url", variable: "SWITCHBOARD_URL", fallback: defaultURL,
		given: func(a *app) string { return strings.Join(a.urls, ",") }, of: func(p profile.Profile) string { return p.URL },
	}
	keySetting = setting{
		flag: "key-file", variable: "SWITCHBOARD_KEY_FILE", secret: "SWITCHBOARD_KEY", file: true,
		given: func(a *app) string { return a.keyFile }, of: func(p profile.Profile) string { return p.KeyFile },
	}
	tokenSetting = setting{
		flag: "token-file", variable: "SWITCHBOARD_TOKEN_FILE", secret: "SWITCHBOARD_TOKEN", file: true,
		given: func(a *app) string { return a.tokenFile }, of: func(p profile.Profile) string { return p.TokenFile },
	}
	caSetting = setting{
		flag: "ca-file", variable: "SWITCHBOARD_CA_FILE", file: true,
		given: func(a *app) string { return a.caFile }, of: func(p profile.Profile) string { return p.CAFile },
	}
)

// value is the value of a setting.
type value struct {
	text   string
	from   string // its source, for errors
	secret bool   // text is the secret itself, not the path of a file
}

// profiles returns the file with the profiles.
func (a *app) profiles() (*profile.File, error) {
	path := a.getenv("SWITCHBOARD_PROFILES")
	if path == "" {
		dir, err := os.UserConfigDir()
		if err != nil {
			return new(profile.File), nil // a process without a home directory has no profiles
		}
		path = filepath.Join(dir, "switchboard", "profiles.yaml")
	}
	return profile.Read(path)
}

// chosen is the profile in use.
type chosen struct {
	file  *profile.File // nil for none
	name  string
	named bool // --profile names it
	profile.Profile
}

// chooseProfile sets the profile in use: that of --profile, of SWITCHBOARD_PROFILE, or the default
// one.
func (a *app) chooseProfile() error {
	if a.profile.file != nil {
		return nil
	}
	name, from := a.profileName, "--profile"
	if name == "" {
		name, from = a.getenv("SWITCHBOARD_PROFILE"), "SWITCHBOARD_PROFILE"
	}
	file, err := a.profiles()
	if err != nil {
		return err
	}
	if name == "" {
		name, from = file.Default, file.Path()
	}
	if name == "" {
		return nil
	}
	p, ok := file.Profiles[name]
	if !ok {
		return usage("%s: there is no profile %q%s", from, name, nearest.Question(name, file.Names()))
	}
	a.profile = chosen{file, name, a.profileName != "", p}
	return nil
}

// value returns the value of a setting: that of its flag; of the profile that --profile names; of
// the environment; or of another profile. The secrets and authorities of a profile are for its own
// addresses: if another source names the addresses, they do not count.
func (a *app) value(s setting) value {
	if text := s.given(a); text != "" {
		return value{text: text, from: "--" + s.flag}
	}
	var fromProfile value
	if a.profile.file != nil && (s.flag == urlSetting.flag || a.ownAddresses()) {
		text := s.of(a.profile.Profile)
		if s.file {
			text = a.profile.file.Resolve(text)
		}
		fromProfile = value{text: text, from: "profile " + a.profile.name}
	}
	if a.profile.named && fromProfile.text != "" {
		return fromProfile
	}
	if s.secret != "" {
		if text := a.getenv(s.secret); text != "" {
			return value{text: text, from: s.secret, secret: true}
		}
	}
	if text := a.getenv(s.variable); text != "" {
		return value{text: text, from: s.variable}
	}
	if fromProfile.text != "" {
		return fromProfile
	}
	return value{text: s.fallback, from: "--" + s.flag}
}

// ownAddresses reports whether the addresses are those of the profile.
func (a *app) ownAddresses() bool { return a.value(urlSetting).from == "profile "+a.profile.name }
