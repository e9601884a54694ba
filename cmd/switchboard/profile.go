package main

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"switchboard/cmd/internal/profile"
	"switchboard/cmd/internal/screen"
	"switchboard/internal/nearest"
)

const profileHelp = `Lists and changes profiles: names for brokers. A profile has the addresses of a broker, and the files with the secrets
for it; the secrets themselves are never part of it, and never printed. The profiles are in a file:
SWITCHBOARD_PROFILES, or switchboard/profiles.yaml in the directory of your settings, which "profile list" prints.

  default: staging                # for commands without --profile; SWITCHBOARD_PROFILE goes first
  profiles:
    staging:
      url: https://a.example.com,https://b.example.com
      tcp: a.example.com:7070       # for connect --tcp
      key_file: staging.key         # the API key; relative to the directory of this file
      token_file: alice.token       # of a client, for connect
      ca_file: ca.pem               # the authorities of https and wss

For each setting, a flag goes first, then the profile that --profile names, then the environment, then the profile of
SWITCHBOARD_PROFILE or the default one. The files of a profile are used for its own addresses only: with --url or
SWITCHBOARD_URL, another broker never receives its key.`

func (a *app) profileCommand() *cobra.Command {
	c := group("profile", "Lists and changes names for brokers", profileHelp,
		a.profileListCommand(), a.profileShowCommand(), a.profileSetCommand(), a.profileUseCommand(), a.profileRemoveCommand())
	c.SuggestFor = []string{"context", "config", "env"}
	return c
}

// completeProfile completes a flag or the first argument by the names of profiles.
func (a *app) completeProfile(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	file, err := a.profiles()
	if err != nil || c.HasParent() && c.Parent().Name() == "profile" && len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return file.Names(), cobra.ShellCompDirectiveNoFileComp
}

// changeProfiles returns a RunE that reads the file with the profiles and calls f.
func (a *app) changeProfiles(f func(file *profile.File, args []string) error) func(*cobra.Command, []string) error {
	return a.run(func(_ context.Context, args []string) error {
		file, err := a.profiles()
		if err != nil {
			return err
		}
		if file.Path() == "" {
			return errors.New("there is no directory for settings: SWITCHBOARD_PROFILES names the file")
		}
		err = f(file, args)
		if errors.Is(err, profile.ErrUnknown) {
			return usage("there is no profile %q%s", args[0], nearest.Question(args[0], file.Names()))
		}
		return err
	})
}

// profileLine is a profile with --json.
type profileLine struct {
	Name    string `json:"name"`
	Default bool   `json:"default,omitempty"`
	profile.Profile
}

func (a *app) profileListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "Lists the profiles", Args: args(0, 0, ""),
		RunE: a.changeProfiles(func(file *profile.File, _ []string) error {
			lines, rows := []profileLine{}, [][]screen.Cell{}
			for _, name := range file.Names() {
				p, mark := file.Profiles[name], ""
				if name == file.Default {
					mark = "default"
				}
				lines = append(lines, profileLine{name, name == file.Default, p})
				rows = append(rows, []screen.Cell{{Text: name, Color: screen.Bold}, {Text: mark}, {Text: p.URL}, {Text: p.KeyFile}})
			}
			a.screen.Value(map[string]any{"file": file.Path(), "profiles": lines}, func() {
				a.screen.Table([]string{"profile", "", "url", "key file"}, rows)
				if a.screen.Terminal || len(rows) == 0 {
					a.note("%s in %s", count(len(rows), "profile"), file.Path())
				}
			})
			return nil
		}),
	}
}

func (a *app) profileShowCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show [NAME]", Short: "Shows a profile, without NAME the one in use", Args: args(0, 1, "a profile"), ValidArgsFunction: a.completeProfile,
		RunE: a.changeProfiles(func(file *profile.File, args []string) error {
			if err := a.chooseProfile(); err != nil {
				return err
			}
			name := a.profile.name
			if len(args) > 0 {
				name = args[0]
			}
			p, ok := file.Profiles[name]
			switch {
			case name == "":
				return usage("no profile is in use")
			case !ok:
				return profile.ErrUnknown
			}
			a.screen.Value(profileLine{name, name == file.Default, p}, func() {
				a.screen.Pairs("profile", name, "url", p.URL, "tcp", p.TCP, "key file", file.Resolve(p.KeyFile),
					"token file", file.Resolve(p.TokenFile), "ca file", file.Resolve(p.CAFile))
			})
			return nil
		}),
	}
}

func (a *app) profileSetCommand() *cobra.Command {
	var p profile.Profile
	var use bool
	c := &cobra.Command{
		Use: "set NAME", Short: "Adds or replaces a profile", Args: args(1, 1, "a name"), ValidArgsFunction: a.completeProfile,
		Long:    "Adds or replaces a profile, with the global flags --url, --key-file and --ca-file. It stores the paths of files, not their content.",
		Example: `  switchboard profile set staging --url https://a.example.com,https://b.example.com --key-file staging.key --use`,
	}
	c.Flags().StringVar(&p.TCP, "tcp", "", "`addresses` for connect --tcp, like a.example.com:7070")
	c.Flags().StringVar(&p.TokenFile, "token-file", "", "`file` with the token of a client")
	c.Flags().BoolVar(&use, "use", false, "make it the default one")
	c.RunE = a.changeProfiles(func(file *profile.File, args []string) error {
		if a.apiKey != "" {
			return usage("--api-key: a profile holds no secrets; write the key into a file for --key-file")
		}
		p.URL, p.KeyFile, p.CAFile = strings.Join(a.urls, ","), a.keyFile, a.caFile
		for _, path := range []*string{&p.KeyFile, &p.TokenFile, &p.CAFile} {
			if *path == "" {
				continue
			}
			absolute, err := filepath.Abs(*path)
			if err != nil {
				return err
			}
			*path = absolute
		}
		if err := file.Set(args[0], p); err != nil {
			return usage("%w", err)
		}
		var err error
		if use {
			err = file.Use(args[0])
		}
		return a.showProfileChange("set", args[0], file, err)
	})
	return c
}

func (a *app) profileUseCommand() *cobra.Command {
	return a.profileChangeCommand("use NAME", "Makes a profile the default one", "default", (*profile.File).Use)
}

func (a *app) profileRemoveCommand() *cobra.Command {
	return a.profileChangeCommand("remove NAME", "Removes a profile, and not the files that it names", "removed", (*profile.File).Remove)
}

// profileChangeCommand returns a command that makes a change of a profile.
func (a *app) profileChangeCommand(use, short, change string, f func(file *profile.File, name string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: args(1, 1, "a profile"), ValidArgsFunction: a.completeProfile,
		RunE: a.changeProfiles(func(file *profile.File, args []string) error {
			return a.showProfileChange(change, args[0], file, f(file, args[0]))
		}),
	}
}

// showProfileChange prints a change of a profile, unless it has failed.
func (a *app) showProfileChange(change, name string, file *profile.File, err error) error {
	return a.show(map[string]string{change: name, "file": file.Path()}, err, func() {
		a.screen.Text("%s: %s (%s)", change, name, file.Path())
	})
}
