// Package profile reads and changes the file with the profiles of the command line. A profile is a
// name for a broker: its addresses, and the files with the secrets for it. The file itself holds no
// secrets:
//
//	default: staging
//	profiles:
//	  staging:
//	    url: https://a.example.com,https://b.example.com
//	    key_file: staging.key
package profile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Profile is one profile. Paths of files are relative to the directory of the profiles' file.
type Profile struct {
	URL       string `yaml:"url" json:"url"`                                   // addresses, separated by commas
	TCP       string `yaml:"tcp,omitempty" json:"tcp,omitempty"`               // addresses for `connect --tcp`, separated by commas
	KeyFile   string `yaml:"key_file,omitempty" json:"key_file,omitempty"`     // with the API key
	TokenFile string `yaml:"token_file,omitempty" json:"token_file,omitempty"` // with the token of a client
	CAFile    string `yaml:"ca_file,omitempty" json:"ca_file,omitempty"`       // PEM, with the authorities of https and wss
}

// File is the file with the profiles.
type File struct {
	Default  string // the name of the profile that is used without another one; "" for none
	Profiles map[string]Profile
	path     string
	doc      yaml.Node // the document, so that changes keep its comments
}

// ErrUnknown is the error for a profile that the file does not have.
var ErrUnknown = errors.New("no such profile")

// Read reads the file, which need not exist.
func Read(path string) (*File, error) {
	f := &File{path: path, Profiles: map[string]Profile{}}
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the profiles: %w", err)
	}
	var content struct {
		Default  string
		Profiles map[string]Profile
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	err = decoder.Decode(&content)
	if err == nil {
		err = yaml.Unmarshal(text, &f.doc)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %s; a profile has url, tcp, key_file, token_file and ca_file", path, strings.ReplaceAll(err.Error(), "\n", " "))
	}
	f.Default = content.Default
	maps.Copy(f.Profiles, content.Profiles)
	for name, p := range f.Profiles {
		if err := p.check(); err != nil {
			return nil, fmt.Errorf("%s: profile %s: %w", path, name, err)
		}
	}
	return f, nil
}

func (p Profile) check() error {
	if p.URL == "" {
		return errors.New("url: missing")
	}
	if strings.Contains(p.URL, "@") {
		return errors.New("url: it must not hold a password; the API key belongs into key_file")
	}
	return nil
}

// Path returns the path of the file.
func (f *File) Path() string { return f.path }

// Names returns the names of the profiles in their order.
func (f *File) Names() []string { return slices.Sorted(maps.Keys(f.Profiles)) }

// Resolve returns the path of a file that a profile names.
func (f *File) Resolve(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(f.path), path)
}

// Set adds or replaces a profile, and writes the file.
func (f *File) Set(name string, p Profile) error {
	if err := p.check(); err != nil {
		return err
	}
	if name == "" || strings.ContainsAny(name, " \t\n:#,") {
		return fmt.Errorf("%q is not a name for a profile: it must be one word without : # and commas", name)
	}
	var value yaml.Node
	if err := value.Encode(p); err != nil {
		return err
	}
	set(child(f.root(), "profiles"), name, &value)
	f.Profiles[name] = p
	return f.write()
}

// Remove removes a profile, and writes the file. If it was the default one, there is none anymore.
func (f *File) Remove(name string) error {
	if _, ok := f.Profiles[name]; !ok {
		return ErrUnknown
	}
	remove(child(f.root(), "profiles"), name)
	delete(f.Profiles, name)
	if f.Default == name {
		remove(f.root(), "default")
		f.Default = ""
	}
	return f.write()
}

// Use makes a profile the default one, and writes the file. "" makes none the default one.
func (f *File) Use(name string) error {
	if _, ok := f.Profiles[name]; !ok && name != "" {
		return ErrUnknown
	}
	if f.Default = name; name == "" {
		remove(f.root(), "default")
	} else {
		set(f.root(), "default", &yaml.Node{Kind: yaml.ScalarNode, Value: name})
	}
	return f.write()
}

// write replaces the file. Only its owner may read it: the addresses concern no others.
func (f *File) write() error {
	var text bytes.Buffer
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	err := encoder.Encode(&f.doc)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(f.path), 0o700)
	}
	if err == nil {
		err = os.WriteFile(f.path+".new", text.Bytes(), 0o600)
	}
	if err == nil {
		err = os.Rename(f.path+".new", f.path)
	}
	if err != nil {
		return fmt.Errorf("the profiles: %w", err)
	}
	return nil
}
