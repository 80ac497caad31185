// Package scenarios holds the faults that others met against the tests that
// show what this system does instead (README.md), and those of the tests that
// need several functions and stores at once.
package scenarios_test

import (
	_ "embed"
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

//go:embed README.md
var table string

// The catalogue has the numbers from 1 to this one.
const lastNumber = 170

var (
	rowPattern = regexp.MustCompile(`^\| (\d+) \| S[1-4](?:/S[1-4])? \| ([^|]+) \| ([^|]+) \|$`)
	// numberPattern is how a row begins, however it goes on.
	numberPattern = regexp.MustCompile(`^\|\s*\d`)
	testPattern   = regexp.MustCompile("`([a-z/-]+)\\.(Test[A-Za-z0-9]+)(/[^`]*)?`")
	// whyPattern is what a row without a test must say.
	whyPattern = regexp.MustCompile(`^(none|pending): .{20,}`)
)

func TestTableNamesEveryScenarioAndOnlyTestsThatExist(t *testing.T) {
	t.Parallel()
	listed := map[int]bool{}
	for line := range strings.Lines(table) {
		line = strings.TrimSpace(line)
		row := rowPattern.FindStringSubmatch(line)
		if row == nil {
			if numberPattern.MatchString(line) {
				t.Errorf("not a row: %s", line)
			}
			continue
		}
		number, err := strconv.Atoi(row[1])
		if err != nil || listed[number] {
			t.Errorf("scenario %s is listed twice (%v)", row[1], err)
		}
		listed[number] = true
		if !testPattern.MatchString(row[3]) && !whyPattern.MatchString(row[3]) {
			t.Errorf("scenario %d has neither a test nor a reason: %s", number, row[3])
		}
	}
	_, rest, _ := strings.Cut(table, "## Numbers that the catalogue does not spell out")
	numbers, _, _ := strings.Cut(rest, ":")
	for field := range strings.SplitSeq(numbers, ",") {
		number, err := strconv.Atoi(strings.TrimSpace(field))
		if err != nil || listed[number] {
			t.Errorf("number %q is listed twice (%v)", field, err)
		}
		listed[number] = true
	}
	for number := range lastNumber {
		if !listed[number+1] {
			t.Errorf("scenario %d is missing", number+1)
		}
	}
	if len(listed) != lastNumber {
		t.Errorf("%d numbers are listed, want %d", len(listed), lastNumber)
	}
	tests := map[string]map[string]bool{}
	for _, name := range testPattern.FindAllStringSubmatch(table, -1) {
		folder, test := name[1], name[2]
		if tests[folder] == nil {
			tests[folder] = testsIn(t, filepath.Join("..", "..", filepath.FromSlash(folder)))
		}
		if !tests[folder][test] {
			t.Errorf("%s has no %s", folder, test)
		}
	}
	if len(tests) < 10 {
		t.Errorf("tests of %d packages are named: the table was not read", len(tests))
	}
}

// testsIn lists the test functions of a folder without running anything.
func testsIn(t *testing.T, folder string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	files, err := os.ReadDir(folder)
	must(t, err)
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(folder, file.Name()), nil, parser.SkipObjectResolution)
		must(t, err)
		for _, decl := range parsed.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if ok && f.Recv == nil && takesT(f.Type) {
				found[f.Name.Name] = true
			}
		}
	}
	return found
}

// takesT reports a function of one *testing.T.
func takesT(f *ast.FuncType) bool {
	if len(f.Params.List) != 1 || f.Results != nil {
		return false
	}
	pointer, ok := f.Params.List[0].Type.(*ast.StarExpr)
	if !ok {
		return false
	}
	named, ok := pointer.X.(*ast.SelectorExpr)
	return ok && named.Sel.Name == "T"
}
