package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestDurationsAreNotOfTheWallClock finds moments that lost their monotonic
// reading and are then used for how long ago they were: the clock of a machine
// is set, by seconds and by years. See internal/monotime.
func TestDurationsAreNotOfTheWallClock(t *testing.T) {
	root := filepath.Join("..", "..")
	files := map[string][]*ast.File{} // by folder
	set := token.NewFileSet()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			if path != root && (strings.HasPrefix(name, ".") || slices.Contains([]string{"node_modules", "testdata", "dist", "out", "bench"}, name)) {
				return filepath.SkipDir
			}
		case strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go"):
			file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			files[filepath.Dir(path)] = append(files[filepath.Dir(path)], file)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range files {
		for _, found := range wallDurations(set, list) {
			t.Error(found)
		}
	}
}

// wallDurations returns what is wrong in a package.
func wallDurations(set *token.FileSet, files []*ast.File) (found []string) {
	fields := map[string]bool{} // that are set to time.Now().UTC() anywhere in the package
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			note(n, fields, nil)
			return true
		})
	}
	for _, file := range files {
		for _, decl := range file.Decls {
			variables := map[string]bool{} // the same in this function
			ast.Inspect(decl, func(n ast.Node) bool {
				note(n, fields, variables)
				return true
			})
			ast.Inspect(decl, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				if m := methodOfNow(call); m == "UnixNano" || m == "UnixMicro" || m == "UnixMilli" {
					found = append(found, fmt.Sprintf("%s: time.Now().%s() is the wall clock's; take monotime.Now()", set.Position(n.Pos()), m))
				}
				for _, e := range lapse(call) {
					if _, isField := e.(*ast.SelectorExpr); isField && fields[lastName(e)] || !isField && variables[lastName(e)] {
						found = append(found, fmt.Sprintf("%s: a duration of %s, which is set to time.Now().UTC() and has no monotonic reading", set.Position(n.Pos()), lastName(e)))
					}
				}
				return true
			})
		}
	}
	return found
}

// note keeps which fields and variables a node sets to time.Now().UTC().
func note(n ast.Node, fields, variables map[string]bool) {
	switch n := n.(type) {
	case *ast.KeyValueExpr:
		if methodOfNow(n.Value) == "UTC" {
			fields[lastName(n.Key)] = true
		}
	case *ast.AssignStmt:
		for i, value := range n.Rhs {
			if methodOfNow(value) != "UTC" || len(n.Lhs) != len(n.Rhs) {
				continue
			}
			if _, isField := n.Lhs[i].(*ast.SelectorExpr); isField {
				fields[lastName(n.Lhs[i])] = true
			} else if variables != nil {
				variables[lastName(n.Lhs[i])] = true
			}
		}
	}
}

// lapse returns the moments whose distance a call tells.
func lapse(call *ast.CallExpr) []ast.Expr {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || len(call.Args) != 1 {
		return nil
	}
	switch name := selector.Sel.Name; {
	case name == "Sub":
		return []ast.Expr{selector.X, call.Args[0]}
	case lastName(selector.X) == "time" && (name == "Since" || name == "Until"):
		return call.Args
	}
	return nil
}

// methodOfNow is the method that an expression calls on time.Now().
func methodOfNow(e ast.Expr) string {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return ""
	}
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if now, ok := selector.X.(*ast.CallExpr); ok {
		if f, ok := now.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Now" && lastName(f.X) == "time" {
			return selector.Sel.Name
		}
	}
	return ""
}

// lastName is x of x and of a.b.x.
func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

func TestWallDurationsAreFound(t *testing.T) {
	for text, want := range map[string]int{
		`var a = s{since: time.Now().UTC()}; func f() { _ = time.Since(a.since) }`:         1,
		`func f() { now := time.Now().UTC(); _ = now.Sub(x); _ = x.Sub(now) }`:             2,
		`func f() { n.Store(time.Now().UnixNano()) }`:                                      1,
		`var a = s{since: time.Now()}; func f() { _ = time.Since(a.since) }`:               0,
		`func f() { e := E{Time: time.Now().UTC()}; e.Time.Before(x); big.Sub(y, e.Time)}`: 0,
	} {
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, "x.go", "package x\n"+text, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := wallDurations(set, []*ast.File{file}); len(got) != want {
			t.Errorf("%s: got %q, want %d", text, got, want)
		}
	}
}
