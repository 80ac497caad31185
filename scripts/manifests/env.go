package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// variable is one environment variable of a program.
type variable struct {
	name   string
	secret bool
}

// file is the name of the file that may hold a secret.
func (v variable) file() string { return strings.ReplaceAll(strings.ToLower(v.name), "_", "-") }

// toolPackages hold what the operator's tool reads; it loads each when needed.
var toolPackages = []string{"shared/mysqlstore", "shared/natsqueue", "shared/redisstore"}

// environment returns the variables that a program reads: a function's by the
// settings of its main, or those of "seckillctl".
func (t Tree) environment(program string) ([]variable, error) {
	variables := []variable{{name: "SECRETS_DIR"}}
	packages := toolPackages
	if program != "seckillctl" {
		var err error
		if packages, err = t.settingsOf(program); err != nil {
			return nil, err
		}
	}
	for _, dir := range packages {
		found, err := t.configOf(dir)
		if err != nil {
			return nil, err
		}
		variables = append(variables, found...)
	}
	return variables, nil
}

// settingsOf returns the folders of the packages whose Config is a field of
// the settings in a function's main.
func (t Tree) settingsOf(function string) ([]string, error) {
	name := path.Join("functions", function, "cmd/main.go")
	file, err := parser.ParseFile(token.NewFileSet(), name, t[name], parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	imports := map[string]string{}
	for _, i := range file.Imports {
		where, _ := strconv.Unquote(i.Path.Value)
		alias := path.Base(where)
		if i.Name != nil {
			alias = i.Name.Name
		}
		imports[alias] = where
	}
	var dirs []string
	for _, field := range structOf(file, "settings") {
		if selector, ok := field.Type.(*ast.SelectorExpr); ok {
			dirs = append(dirs, strings.TrimPrefix(imports[fmt.Sprint(selector.X)], "seckill/"))
		}
	}
	if len(dirs) == 0 {
		return nil, fmt.Errorf("%s: no settings", name)
	}
	return dirs, nil
}

// configOf returns the variables of the Config of the package in dir.
func (t Tree) configOf(dir string) ([]variable, error) {
	var found []variable
	for _, name := range t.under(dir) {
		if path.Dir(name) != dir || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, t[name], parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, field := range structOf(file, "Config") {
			if field.Tag == nil {
				continue
			}
			text, _ := strconv.Unquote(field.Tag.Value)
			tag := reflect.StructTag(text)
			if v := tag.Get("envconfig"); v != "" {
				found = append(found, variable{name: v, secret: tag.Get("secret") == "true"})
			}
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s: no Config with variables", dir)
	}
	return found, nil
}

// structOf returns the fields of a struct type declared in file.
func structOf(file *ast.File, name string) []*ast.Field {
	for _, decl := range file.Decls {
		generic, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, s := range generic.Specs {
			typed, ok := s.(*ast.TypeSpec)
			if !ok || typed.Name.Name != name {
				continue
			}
			if fields, ok := typed.Type.(*ast.StructType); ok {
				return fields.Fields.List
			}
		}
	}
	return nil
}

// A Start is one way in which a program is started: what it finds in its
// environment and in its folder of secrets.
type Start struct {
	Program string
	Env     map[string]string
	Secrets []string
}

// checkStart checks the names in a start's environment and secrets.
func (c *check) checkStart(where string, s Start) {
	variables, err := c.tree.environment(s.Program)
	if err != nil {
		c.report(where, "%v", err)
		return
	}
	for name := range s.Env {
		if !slices.ContainsFunc(variables, func(v variable) bool { return v.name == name }) {
			c.report(where, "%s is no variable of %s", name, s.Program)
		}
	}
	for _, secret := range s.Secrets {
		if !slices.ContainsFunc(variables, func(v variable) bool { return v.secret && v.file() == secret }) {
			c.report(where, "%s is no secret of %s", secret, s.Program)
		}
	}
	if s.Program == "seckillctl" {
		return
	}
	if _, ok := s.Env["DRAIN_DELAY"]; !ok && strings.HasPrefix(where, "stack.yml") {
		c.report(where, "DRAIN_DELAY is not set: requests would meet a closed port")
	}
	c.starts = append(c.starts, placed{where, s})
}

// placed is a Start and where it was found.
type placed struct {
	where string
	Start
}
