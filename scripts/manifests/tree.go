package main

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// Tree is the repository's files that are checked, by slash-separated path
// from its root. A changed copy of it is how a seeded mistake is made.
type Tree map[string][]byte

// readTree reads what the checks look at below root.
func readTree(root string) (Tree, error) {
	t := Tree{}
	for _, part := range []string{".dockerignore", "go.mod", "go.sum", "stack.yml", "functions", "k8s", "lua", "shared", "scripts/compose.yaml", "scripts/compose", "scripts/prewarm"} {
		err := filepath.WalkDir(filepath.Join(root, part), func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			rel, err := filepath.Rel(root, name)
			if err != nil {
				return err
			}
			t[filepath.ToSlash(rel)], err = os.ReadFile(name)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", part, err)
		}
	}
	return t, nil
}

// under returns the sorted paths below dir.
func (t Tree) under(dir string) []string {
	var found []string
	for name := range t {
		if strings.HasPrefix(name, dir+"/") {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}

// functions returns the sorted names of the functions that have a main.
func (t Tree) functions() []string {
	var names []string
	for name := range t {
		if rest, ok := strings.CutPrefix(name, "functions/"); ok && strings.HasSuffix(rest, "/cmd/main.go") {
			names = append(names, strings.TrimSuffix(rest, "/cmd/main.go"))
		}
	}
	slices.Sort(names)
	return names
}

// kustomizations returns the folders that kustomize can build, and those that
// are components of others.
func (t Tree) kustomizations() (builds, components []string) {
	for _, name := range t.under("k8s") {
		if path.Base(name) != "kustomization.yaml" {
			continue
		}
		dir := path.Dir(name)
		if strings.Contains(string(t[name]), "kind: Component\n") {
			components = append(components, dir)
		} else {
			builds = append(builds, dir)
		}
	}
	return builds, components
}

// build runs kustomize on dir, with one more component if that is not empty.
func (t Tree) build(dir, component string) ([]Object, error) {
	disk := filesys.MakeFsInMemory()
	for _, name := range t.under("k8s") {
		if err := disk.WriteFile("/"+name, t[name]); err != nil {
			return nil, fmt.Errorf("build %s: %w", dir, err)
		}
	}
	where := "/" + dir
	if component != "" {
		where = "/k8s/with"
		text := "kind: Kustomization\nresources: [" + relative(dir) + "]\ncomponents: [" + relative(component) + "]\n"
		if err := disk.WriteFile(where+"/kustomization.yaml", []byte(text)); err != nil {
			return nil, fmt.Errorf("build %s: %w", dir, err)
		}
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(disk, where)
	if err != nil {
		return nil, fmt.Errorf("kustomize build: %w", err)
	}
	var objects []Object
	for _, resource := range built.Resources() {
		text, err := resource.AsYAML()
		if err != nil {
			return nil, fmt.Errorf("build %s: %w", dir, err)
		}
		object, err := newObject(text)
		if err != nil {
			return nil, fmt.Errorf("build %s: %w", dir, err)
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// relative is a folder below k8s as seen from k8s/with.
func relative(dir string) string { return "../" + strings.TrimPrefix(dir, "k8s/") }
