// Command wordcheck reports words that this repository does not use, and comment lines that are
// too long, each with file and line. Its arguments are files and directories. Without arguments it
// checks all files of the working directory that git does not ignore.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxColumns is the largest length of a comment line, in characters. A tab counts as one.
const maxColumns = 100

// A rule forbids words.
type rule struct {
	word    *regexp.Regexp
	except  *regexp.Regexp // allowed uses of the words; nil means none
	instead string         // advice for the finding
}

var rules = []rule{
	{word: words(`who(ever|mever|soever)`), instead: "name the caller, the session, the client"},
	{
		word: words(`some(body|one)|any(body|one)|every(body|one)`), except: words("anyone"),
		instead: "a caller, a client, any client, all clients",
	},
	{
		word:    words(`nobody`),
		except:  regexp.MustCompile("`nobody`|\"nobody\"|, users (and|or) nobody|,users,nobody|named, grant or nobody|: nobody\\b"),
		instead: "no client, no caller, nothing",
	},
	{
		word: words(`behind`),
		except: regexp.MustCompile(`(?i)\bbehind (a|an|the|its|their|one|that|this|each|your)? ?(\w+ )?` +
			`(cursors?|sockets?|prox(y|ies)|load balancers?|nginx|haproxy|position)\b|(falls?|fell|is|far|lags?) behind\b|"behind:"`),
		instead: "after, for time and order",
	},
	{word: words(`doors?|doorstep|wish(es|ed)?|crowd(s|ed)?|unsure|hither|thither|for ever`), instead: "the field's term"},
	{word: words(`he|him|himself|his|she`), instead: "it, or the noun"},
	{word: words(`(is|are|was|were|be|been|being|gets?) (not )?told`), instead: "receives, is notified, learns"},
}

// words returns a pattern for any of the alternatives as whole words, in upper and lower case.
func words(alternatives string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(` + alternatives + `)\b`)
}

var (
	capital    = regexp.MustCompile(`([a-z0-9])([A-Z])`)
	underscore = regexp.MustCompile(`(\w)_(\w)`)
)

// find returns the forbidden words in text. Identifiers count as the words that they consist of.
func (r rule) find(text string) []string {
	text = underscore.ReplaceAllString(capital.ReplaceAllString(text, "$1 $2"), "$1 $2")
	if r.except != nil {
		text = r.except.ReplaceAllString(text, "…")
	}
	return r.word.FindAllString(text, -1)
}

// checked reports whether the file holds text that people wrote for this repository. This command
// is an exception: it has to contain the words. So is docs/doors.md, which leads old links to a page
// with a new name.
func checked(path string) bool {
	slashed := "/" + filepath.ToSlash(path)
	for _, part := range []string{"/testdata/", "/node_modules/", "/dist/", "/internal/wordcheck/", "/bench/plots/", "/docs/doors.md"} {
		if strings.Contains(slashed, part) {
			return false
		}
	}
	switch filepath.Ext(path) {
	case ".go", ".lua", ".md", ".yaml", ".js", ".mjs", ".ts", ".tsx", ".html":
		return true
	}
	return script(path)
}

// script reports whether the file is a Makefile or a script of the CI.
func script(path string) bool {
	slashed := filepath.ToSlash(path)
	return filepath.Base(path) == "Makefile" || strings.HasPrefix(slashed, ".ci/") || strings.Contains(slashed, "/.ci/")
}

// check writes a line for each finding in the file's name and text and returns their number.
func check(out io.Writer, path string, text io.Reader) (found int, err error) {
	name := filepath.Base(path)
	for _, r := range rules {
		for _, word := range r.find(strings.TrimSuffix(name, filepath.Ext(name))) {
			found++
			fmt.Fprintf(out, "%s: %q in the file name: write %s\n", path, word, r.instead)
		}
	}
	lines := bufio.NewScanner(text)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		for _, r := range rules {
			for _, word := range r.find(line) {
				found++
				fmt.Fprintf(out, "%s:%d: %q: write %s\n", path, n, word, r.instead)
			}
		}
		if columns := utf8.RuneCountInString(line); columns > maxColumns && isComment(path, line) {
			found++
			fmt.Fprintf(out, "%s:%d: comment of %d columns: at most %d\n", path, n, columns, maxColumns)
		}
	}
	return found, lines.Err()
}

// isComment reports whether the line consists of a comment alone. Compiler directives, which cannot
// be broken into several lines, are not comments.
func isComment(path, line string) bool {
	line = strings.TrimSpace(line)
	switch filepath.Ext(path) {
	case ".go", ".js":
		return strings.HasPrefix(line, "//") && !strings.HasPrefix(line, "//go:")
	case ".lua":
		return strings.HasPrefix(line, "--")
	case ".yaml":
		return strings.HasPrefix(line, "#")
	}
	return script(path) && strings.HasPrefix(line, "#")
}

// files returns the files to check: the arguments, the files in directories among the arguments, or
// all files in the working directory. An argument without a file is an error.
func files(args []string) ([]string, error) {
	command := []string{"ls-files", "-z", "--cached", "--others", "--exclude-standard"}
	if len(args) > 0 {
		command = append(append(command, "--error-unmatch", "--"), args...)
	}
	out, err := exec.Command("git", command...).Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
		}
		return nil, fmt.Errorf("git ls-files: %w", err)
	}
	var list []string
	for path := range strings.SplitSeq(string(out), "\x00") {
		if checked(path) {
			list = append(list, path)
		}
	}
	return slices.Compact(list), nil // in a merge conflict git lists a file several times
}

func run(out io.Writer, args []string) (found int, err error) {
	list, err := files(args)
	if err != nil {
		return 0, err
	}
	for _, path := range list {
		text, err := os.Open(path)
		if os.IsNotExist(err) { // deleted, but still in the index of git
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
	flag.Usage = func() { fmt.Fprintln(os.Stderr, "usage: wordcheck [file or directory]...") }
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
