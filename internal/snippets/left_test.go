package snippets

import (
	"io/fs"
	"os"
	"os/exec"
	"slices"
)

// files returns the names of the files in the clone. Those of directories end with a slash.
func (s *shell) files() (names []string) {
	s.t.Helper()
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, e := range entries {
		switch name := e.Name(); {
		case e.Type()&fs.ModeSymlink != 0, name == ".steps", name == "servers.log": // of the test
		case e.IsDir():
			names = append(names, name+"/")
		default:
			names = append(names, name)
		}
	}
	return names
}

// checkLeft checks that git ignores what the page has left in the clone: a secret must not become
// part of a commit.
func (s *shell) checkLeft() {
	s.t.Helper()
	for _, name := range s.files() {
		if slices.Contains(s.own, name) {
			continue
		}
		cmd := exec.CommandContext(s.t.Context(), "git", "check-ignore", "--quiet", "--no-index", name)
		cmd.Dir = root
		if err := cmd.Run(); err != nil {
			s.t.Errorf("%s leaves %s in the clone, which .gitignore does not have: %v", s.page, name, err)
		}
	}
}
