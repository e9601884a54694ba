package wire

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestErrorsPage compares docs/errors.md with the codes: each error with its status, and each
// reason of a close with its WebSocket code.
func TestErrorsPage(t *testing.T) {
	text, err := os.ReadFile("../../docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| ([^|]*) \\|").FindAllStringSubmatch(string(text), -1) {
		section := "error "
		if strings.Index(string(text), m[0]) > strings.Index(string(text), "\n## Closing") {
			section = "close "
		}
		rows[section+m[1]] = m[2]
	}
	for code := range constantsOf(t, "ErrorCode") {
		if want, got := strconv.Itoa(ErrorCode(code).Status()), rows["error "+code]; got != want {
			t.Errorf("error %s: the page has status %q, want %s", code, got, want)
		}
		delete(rows, "error "+code)
	}
	for code := range constantsOf(t, "CloseReason") {
		if CloseReason(code) == CloseGone {
			continue
		}
		if want, got := fmt.Sprint(CloseReason(code).Status()), rows["close "+code]; got != want {
			t.Errorf("close %s: the page has code %q, want %s", code, got, want)
		}
		delete(rows, "close "+code)
	}
	if len(rows) > 0 {
		t.Errorf("there are no such codes: %v", rows)
	}
}

// constantsOf returns the values of the string constants of a type of this package.
func constantsOf(t *testing.T, typ string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]bool{}
	add := func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if name, ok := spec.Type.(*ast.Ident); ok && name.Name == typ && len(spec.Values) == 1 {
			if literal, ok := spec.Values[0].(*ast.BasicLit); ok {
				value, _ := strconv.Unquote(literal.Value)
				values[value] = true
			}
		}
		return true
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, add)
	}
	if len(values) < 5 {
		t.Fatalf("%s has the values %v", typ, values)
	}
	return values
}
