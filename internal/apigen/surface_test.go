package apigen_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the generated files, and those that tests compare")

// TestSurface compares the exported names, signatures and fields of the Go clients with a file, so
// that a change of the document or of the generator changes no program that uses them unseen. Names
// of parameters and the order of fields do not count.
func TestSurface(t *testing.T) {
	var got strings.Builder
	for _, dir := range []string{"account", "backend", "board", "hold", "room", "scene"} {
		fmt.Fprintf(&got, "package %s\n\n%s\n\n", dir, strings.Join(surface(t, "../../client/"+dir), "\n"))
	}
	compareFile(t, "testdata/surface.txt", got.String())
}

// compareFile compares a text with a file, or writes it.
func compareFile(t *testing.T, path, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := differences(string(got), want); diff != "" {
		t.Errorf("%s is not current:\n%srun `go test ./internal/apigen -update` if that is meant", path, diff)
	}
}

// differences returns the lines that one of two texts has, and the other one has not.
func differences(before, after string) string {
	var out strings.Builder
	lines := func(in, without, mark string) {
		known := strings.Split(without, "\n")
		for line := range strings.SplitSeq(in, "\n") {
			if !slices.Contains(known, line) {
				fmt.Fprintln(&out, mark, line)
			}
		}
	}
	lines(before, after, "-")
	lines(after, before, "+")
	if out.Len() == 0 && before != after {
		return "the order of lines differs\n"
	}
	return out.String()
}

// surface returns the exported declarations of a package, without comments.
func surface(t *testing.T, dir string) (list []string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	files := token.NewFileSet()
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.FileExports(file)
		for _, d := range file.Decls {
			list = append(list, declarations(t, files, d)...)
		}
	}
	slices.Sort(list)
	return list
}

// declarations returns a text for each name that a declaration declares, and for each field.
func declarations(t *testing.T, files *token.FileSet, d ast.Decl) (list []string) {
	show := func(n any) string {
		var out bytes.Buffer
		if err := printer.Fprint(&out, files, n); err != nil {
			t.Fatal(err)
		}
		return strings.Join(strings.Fields(out.String()), " ")
	}
	if f, ok := d.(*ast.FuncDecl); ok {
		head := "func "
		if f.Recv != nil {
			head += "(" + show(f.Recv.List[0].Type) + ") "
		}
		return []string{head + f.Name.Name + types(f.Type.Params, show) + " " + types(f.Type.Results, show)}
	}
	g, ok := d.(*ast.GenDecl)
	if !ok || g.Tok == token.IMPORT {
		return nil
	}
	for _, s := range g.Specs {
		typ, isType := s.(*ast.TypeSpec)
		if !isType {
			list = append(list, g.Tok.String()+" "+show(s))
			continue
		}
		fields, isStruct := typ.Type.(*ast.StructType)
		if !isStruct {
			list = append(list, "type "+show(typ))
			continue
		}
		list = append(list, "type "+typ.Name.Name+" struct")
		for _, f := range fields.Fields.List {
			tag := ""
			if f.Tag != nil {
				tag = " " + f.Tag.Value
			}
			if len(f.Names) == 0 {
				list = append(list, "type "+typ.Name.Name+" struct: "+show(f.Type)+tag)
			}
			for _, name := range f.Names {
				list = append(list, "type "+typ.Name.Name+" struct: "+name.Name+" "+show(f.Type)+tag)
			}
		}
	}
	return list
}

// types returns the types of parameters or results.
func types(fields *ast.FieldList, show func(any) string) string {
	var list []string
	if fields != nil {
		for _, f := range fields.List {
			for range max(1, len(f.Names)) {
				list = append(list, show(f.Type))
			}
		}
	}
	return "(" + strings.Join(list, ", ") + ")"
}
