package broker_test

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	// listedFrom is the number of files from which a package lists them in its doc.go.
	listedFrom = 13
	// maxAgainst is the most pairs of files of package session of which the later one in the list uses
	// a name of the earlier one.
	maxAgainst = 20
)

// TestFilesListed checks that the doc.go of each large package names each of its files once, after
// the words "in reading order".
func TestFilesListed(t *testing.T) {
	count := map[string][]string{}
	err := filepath.WalkDir("..", func(file string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == "node_modules" || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if err == nil && strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, "_test.go") {
			count[filepath.Dir(file)] = append(count[filepath.Dir(file)], d.Name())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	large := 0
	for dir, files := range count {
		files = slices.DeleteFunc(files, func(name string) bool { return name == "doc.go" })
		if len(files) < listedFrom {
			continue
		}
		large++
		listed := filesInOrder(t, dir)
		for _, name := range files {
			if !slices.Contains(listed, name) {
				t.Errorf("%s/doc.go does not list %s", dir, name)
			}
		}
		for i, name := range listed {
			if !slices.Contains(files, name) || slices.Contains(listed[:i], name) {
				t.Errorf("%s/doc.go lists %s, which does not exist or is listed already", dir, name)
			}
		}
	}
	if large == 0 {
		t.Fatal("no package was looked at")
	}
}

// filesInOrder returns the files that the doc.go of a package lists.
func filesInOrder(t *testing.T, dir string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "doc.go"))
	if err != nil {
		t.Error(err)
		return nil
	}
	_, list, found := strings.Cut(string(text), "in reading order")
	if !found {
		t.Errorf("%s/doc.go does not list its files in reading order", dir)
	}
	return regexp.MustCompile(`\b\w+\.go\b`).FindAllString(list, -1)
}

// TestSessionReadsDown checks that package session can be read in the order of its list: a file
// uses names of later files. A pair of files counts once, methods count, and fields do not.
func TestSessionReadsDown(t *testing.T) {
	t.Parallel()
	order := filesInOrder(t, "session")
	against := map[string]string{} // an example by pair of files
	for use, name := range usesBetweenFiles(t, "session") {
		if slices.Index(order, use[1]) < slices.Index(order, use[0]) {
			against[use[0]+" uses "+use[1]] = name
		}
	}
	t.Logf("%d uses are against the reading order", len(against))
	if len(against) > maxAgainst {
		t.Errorf("at most %d uses may be against the reading order", maxAgainst)
		for pair, name := range against {
			t.Logf("%s: %s", pair, name)
		}
	}
}

// usesBetweenFiles returns the pairs of files of a package of which the first uses a name of the
// package that the second declares. It checks the types without those of other packages, which
// would take 20 s, so it does not see what is called on the result of a call to another package.
func usesBetweenFiles(t *testing.T, dir string) map[[2]string]string {
	t.Helper()
	var files []*ast.File
	fset := token.NewFileSet()
	listed, err := build.ImportDir(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range listed.GoFiles {
		file, err := parser.ParseFile(fset, filepath.Join(dir, name), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: emptyPackages{}, Error: func(error) {}}
	pkg, _ := conf.Check("switchboard/broker/"+dir, fset, files, info) // the errors are about names of other packages
	uses := map[[2]string]string{}
	for id, obj := range info.Uses {
		method := false
		if f, ok := obj.(*types.Func); ok {
			method = f.Signature().Recv() != nil
		}
		if obj.Pkg() != pkg || !method && obj.Parent() != pkg.Scope() {
			continue
		}
		from, to := filepath.Base(fset.Position(id.Pos()).Filename), filepath.Base(fset.Position(obj.Pos()).Filename)
		if from != to {
			uses[[2]string{from, to}] = obj.Name()
		}
	}
	return uses
}

// emptyPackages is a types.Importer whose packages declare nothing.
type emptyPackages struct{}

func (emptyPackages) Import(pkg string) (*types.Package, error) {
	empty := types.NewPackage(pkg, path.Base(strings.TrimSuffix(pkg, "/v2")))
	empty.MarkComplete()
	return empty, nil
}
