// Command wordcheck reports words that this repository does not use, and comment lines that are
// too long, each with file and line. Its arguments are files and directories; none means all files
// that git tracks.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"
)

// maxColumns is the most columns of a comment line; a tab counts as one.
const maxColumns = 100

// rules are the words and what to write instead. A rule's except are uses that are fine.
var rules = []struct {
	word, except *regexp.Regexp
	instead      string
}{
	{word: words(`who(ever|mever|soever)`), instead: "name the caller, the session, the client"},
	{word: words(`some(body|one)|any(body|one)|every(body|one)`), instead: "a caller, a client, any client, all clients", except: words("anyone")},
	{word: words(`nobody`), instead: "no client, no caller, nothing", except: regexp.MustCompile("`nobody`|\"nobody\"|, users (and|or) nobody|named, grant or nobody|: nobody\\b")},
	{word: words(`behind`), instead: "after, for time and order",
		except: regexp.MustCompile(`(?i)\bbehind (a|an|the|its|their|one|that|this|each|your)? ?(\w+ )?(cursors?|sockets?|prox(y|ies)|load balancers?|nginx|haproxy|position)\b|(falls?|fell|is|far|lags?) behind\b`)},
	{word: words(`doors?|doorstep|wish(es|ed)?|crowd(s|ed)?|unsure|hither|thither|for ever`), instead: "the field's term"},
	{word: words(`he|him|his|she`), instead: "it, or the noun"},
	{word: words(`(is|are|was|were|be|been|being|gets?) (not )?told`), instead: "receives, is notified, learns"},
}

// words matches any of the alternatives as whole words, in upper and lower case.
func words(alternatives string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(` + alternatives + `)\b`)
}

// checked reports whether the file holds text that people wrote for this repository.
func checked(path string) bool {
	slashed := filepath.ToSlash(path)
	for _, part := range []string{"testdata/", "node_modules/", "internal/wordcheck/", "bench/plots/"} {
		if strings.Contains(slashed, part) {
			return false
		}
	}
	switch filepath.Ext(path) {
	case ".go", ".lua", ".md", ".yaml", ".js", ".html":
		return true
	}
	return filepath.Base(path) == "Makefile" || strings.HasPrefix(slashed, ".ci/")
}

// check writes a line for each finding in the text and returns how many there are.
func check(out io.Writer, path string, text io.Reader) (found int, err error) {
	lines := bufio.NewScanner(text)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		for _, r := range rules {
			rest := line
			if r.except != nil {
				rest = r.except.ReplaceAllString(rest, "")
			}
			if word := r.word.FindString(rest); word != "" {
				found++
				fmt.Fprintf(out, "%s:%d: %q: write %s\n", path, n, word, r.instead)
			}
		}
		if columns := utf8.RuneCountInString(line); columns > maxColumns && isComment(path, line) {
			found++
			fmt.Fprintf(out, "%s:%d: a comment of %d columns; %d are the most\n", path, n, columns, maxColumns)
		}
	}
	return found, lines.Err()
}

// isComment reports whether nothing but a comment is in the line.
func isComment(path, line string) bool {
	line = strings.TrimSpace(line)
	switch filepath.Ext(path) {
	case ".go", ".js":
		return strings.HasPrefix(line, "//")
	case ".lua":
		return strings.HasPrefix(line, "--")
	case ".yaml":
		return strings.HasPrefix(line, "#")
	}
	return false
}

// files returns the files to check: those named, those in the directories named, or all that git tracks.
func files(args []string) ([]string, error) {
	out, err := exec.Command("git", append([]string{"ls-files", "-co", "--exclude-standard", "--"}, args...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w", err)
	}
	var list []string
	for path := range strings.Lines(string(out)) {
		if path = strings.TrimSpace(path); checked(path) {
			list = append(list, path)
		}
	}
	return list, nil
}

func run(out io.Writer, args []string) (found int, err error) {
	list, err := files(args)
	if err != nil {
		return 0, err
	}
	for _, path := range list {
		text, err := os.Open(path)
		if os.IsNotExist(err) { // deleted, and git does not know yet
			continue
		}
		if err != nil {
			return found, err
		}
		n, err := check(out, path, text)
		text.Close()
		if found += n; err != nil {
			return found, fmt.Errorf("%s: %w", path, err)
		}
	}
	return found, nil
}

func main() {
	flag.Parse()
	switch found, err := run(os.Stdout, flag.Args()); {
	case err != nil:
		fmt.Fprintln(os.Stderr, "wordcheck:", err)
		os.Exit(2)
	case found > 0:
		fmt.Fprintf(os.Stderr, "wordcheck: %d findings\n", found)
		os.Exit(1)
	}
}
