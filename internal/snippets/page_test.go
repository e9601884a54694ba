package snippets

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// root is the directory of the repository.
const root = "../.."

// A block is a code block of a page.
type block struct {
	page     string // path from the root
	line     int    // number of its first line of code
	language string // the first word of the info string; "sh" or "json" for indented blocks that look like it
	info     string // the rest of the info string
	code     string
}

func (b block) first() string {
	line, _, _ := strings.Cut(b.code, "\n")
	return line
}

// fileName matches a comment that names the file in which the code belongs.
var fileName = regexp.MustCompile(`^(?:#|//|<!--)\s*([\w./-]+\.(?:yaml|json|js|mjs|cjs|ts|html|go|sh))(?:\s*-->)?$`)

// file returns the name of the file that the block holds, or "".
func (b block) file() string {
	if m := fileName.FindStringSubmatch(b.first()); m != nil {
		return m[1]
	}
	return ""
}

// command matches the first word of an indented block that is a shell script.
var command = regexp.MustCompile(`^(\$ )?(?:curl|nc|make|npm|export|git|bin/\S+|switchboard|broker|janitor|umask|source|redis-cli|go|\w+=\S*)\b`)

// pages returns the paths of the pages from the root.
func pages(t *testing.T) []string {
	t.Helper()
	list := []string{"README.md", "client/js/README.md"}
	for _, optional := range []string{"CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"} {
		if _, err := os.Stat(filepath.Join(root, optional)); err == nil {
			list = append(list, optional)
		}
	}
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".md" {
			list = append(list, strings.TrimPrefix(path, root+"/"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// blocksOf returns the blocks of a page in their order.
func blocksOf(t *testing.T, page string) []block {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	return parse(page, string(text))
}

var fence = regexp.MustCompile("^```(\\w*) ?(.*)$")

// parse finds the fenced blocks, the indented ones outside of lists, and those in comments.
func parse(page, text string) (blocks []block) {
	lines := strings.Split(text, "\n")
	for i, inList := 0, false; i < len(lines); i++ {
		line := lines[i]
		switch m := fence.FindStringSubmatch(line); {
		case m != nil:
			end := i + 1
			for end < len(lines) && lines[end] != "```" {
				end++
			}
			blocks = append(blocks, block{page, i + 2, m[1], m[2], strings.Join(lines[i+1:end], "\n") + "\n"})
			i = end
		case line == "<!-- wire", line == "<!-- sh":
			end := i + 1 + slices.Index(lines[i+1:], "-->")
			blocks = append(blocks, block{page, i + 2, strings.TrimPrefix(line, "<!-- "), "hidden", strings.Join(lines[i+1:end], "\n") + "\n"})
			i = end
		case strings.HasPrefix(line, "    ") && !inList:
			end := i
			for end < len(lines) && (strings.HasPrefix(lines[end], "    ") || lines[end] == "" && end+1 < len(lines) && strings.HasPrefix(lines[end+1], "    ")) {
				lines[end] = strings.TrimPrefix(lines[end], "    ")
				end++
			}
			b := block{page, i + 1, "", "", strings.Join(lines[i:end], "\n") + "\n"}
			if command.MatchString(b.first()) {
				b.language = "sh"
			} else if strings.HasPrefix(b.first(), `{"`) {
				b.language = "json"
			}
			blocks = append(blocks, b)
			i = end - 1
		case line != "" && !strings.HasPrefix(line, " "):
			inList = regexp.MustCompile(`^(-|\*|\d+\.) `).MatchString(line)
		}
	}
	return blocks
}

func TestParse(t *testing.T) {
	got := parse("p", "text\n\n    curl x\n    {\"a\":1}\n\n- item\n\n    more of the item\n\n```json answer\n{}\n```\n<!-- wire\n> {}\n-->\n")
	want := []block{{"p", 3, "sh", "", "curl x\n{\"a\":1}\n"}, {"p", 11, "json", "answer", "{}\n"}, {"p", 14, "wire", "hidden", "> {}\n"}}
	if !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}
