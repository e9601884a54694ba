package broker_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocNamesExistingFunctions: each function that doc.go names as package.Type.Method must exist.
func TestDocNamesExistingFunctions(t *testing.T) {
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`\b([a-z]+)\.([A-Za-z]+)\.([A-Za-z]+)\b`).FindAllStringSubmatch(string(text), -1)
	if len(names) < 15 {
		t.Errorf("doc.go names %d functions; want 15 at least", len(names))
	}
	byPackage := map[string]map[string]bool{} // each package is parsed once
	for _, name := range names {
		if byPackage[name[1]] == nil {
			byPackage[name[1]] = methods(t, name[1])
		}
		if !byPackage[name[1]][name[2]+"."+name[3]] {
			t.Errorf("%s does not exist", name[0])
		}
	}
}

// methods returns the methods of a package of the broker or of a store, as Type.Method.
func methods(t *testing.T, pkg string) map[string]bool {
	t.Helper()
	dir := map[string]string{"broker": ".", "queue": "../queue", "registry": "../registry"}[pkg]
	if dir == "" {
		dir = pkg
	}
	found := map[string]bool{}
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv != nil {
					found[receiver(n)+"."+n.Name.Name] = true
				}
			case *ast.TypeSpec:
				if i, ok := n.Type.(*ast.InterfaceType); ok {
					for _, m := range i.Methods.List {
						for _, name := range m.Names {
							found[n.Name.Name+"."+name.Name] = true
						}
					}
				}
			}
			return true
		})
	}
	return found
}

// receiver returns the type that f is a method of.
func receiver(f *ast.FuncDecl) string {
	if p, ok := f.Recv.List[0].Type.(*ast.StarExpr); ok {
		if id, ok := p.X.(*ast.Ident); ok {
			return id.Name
		}
	}
	if id, ok := f.Recv.List[0].Type.(*ast.Ident); ok {
		return id.Name
	}
	return strings.TrimSpace(f.Name.Name)
}
