package deploy

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestSnippetsOfGuides: each line of a configuration in the guides is in the file that it quotes.
func TestSnippetsOfGuides(t *testing.T) {
	files := map[string]string{"haproxy": "haproxy.cfg", "nginx": "nginx.conf"}
	fence := regexp.MustCompile("(?ms)^```(haproxy|nginx)\n(.*?)^```$")
	pages, err := filepath.Glob("../docs/guides/*.md")
	if err != nil {
		t.Fatal(err)
	}
	quoted := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, snippet := range fence.FindAllStringSubmatch(string(text), -1) {
			config, err := os.ReadFile(files[snippet[1]])
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(snippet[2]) {
				if quoted++; !strings.Contains(string(config), strings.TrimRight(line, "\n")) {
					t.Errorf("%s: %q is not in %s", page, line, files[snippet[1]])
				}
			}
		}
	}
	if quoted == 0 {
		t.Error("no page quotes a configuration")
	}
}
