package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	linkPattern    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	headingPattern = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	anchorPattern  = regexp.MustCompile(`<a id="([^"]*)">(?:</a>)?`)
	codePattern    = regexp.MustCompile("(?ms)^```.*?^```$|`[^`\n]*`")
)

// TestLinks checks that the links between the Markdown files lead to files and headings that exist.
func TestLinks(t *testing.T) {
	const root = "../.."
	links := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules") && path != root:
			return filepath.SkipDir
		case filepath.Ext(path) != ".md":
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, link := range linkPattern.FindAllStringSubmatch(codePattern.ReplaceAllString(string(text), ""), -1) {
			if strings.Contains(link[1], "://") {
				continue
			}
			links++
			if problem := checkLink(path, link[1]); problem != "" {
				t.Errorf("%s: %s: %s", path, link[1], problem)
			}
		}
		return nil
	})
	if err != nil || links < 50 {
		t.Errorf("%d links: %v", links, err)
	}
}

// checkLink returns what is wrong with a link in the file at path, or "".
func checkLink(path, link string) string {
	file, anchor, hasAnchor := strings.Cut(link, "#")
	if file != "" {
		path = filepath.Join(filepath.Dir(path), file)
	}
	if _, err := os.Stat(path); err != nil {
		return "there is no such file"
	}
	if !hasAnchor {
		return ""
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	for _, a := range anchorPattern.FindAllStringSubmatch(string(text), -1) {
		if a[1] == anchor {
			return ""
		}
	}
	for _, heading := range headingPattern.FindAllStringSubmatch(string(text), -1) {
		if slug(heading[1]) == anchor {
			return ""
		}
	}
	return "there is no such heading"
}

// slug returns the anchor that GitHub gives to a heading.
func slug(heading string) string {
	heading = anchorPattern.ReplaceAllString(heading, "")
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r > 127:
			return r
		}
		return -1
	}, strings.ToLower(heading))
}
