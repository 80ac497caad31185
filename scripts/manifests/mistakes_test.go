package main

import (
	"bytes"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

func TestMain(m *testing.M) {
	code := m.Run()
	removeLoaders()
	os.Exit(code)
}

// repositoryTree is the repository as it is.
var repositoryTree = sync.OnceValues(func() (Tree, error) { return readTree(repository) })

// The repository has no mistake, and looking at it means looking at everything.
func TestRepository(t *testing.T) {
	t.Parallel()
	tree, err := repositoryTree()
	if err != nil {
		t.Fatal(err)
	}
	r := Check(tree)
	for _, f := range r.Findings {
		t.Error(f)
	}
	for _, what := range r.Unchecked {
		t.Log("NOT CHECKED:", what)
	}
	if r.Objects < 150 || r.Starts < 40 {
		t.Errorf("looked at %d objects and %d starts only", r.Objects, r.Starts)
	}
}

// A mistake is a change to a file that a check must notice.
type mistake struct {
	name, file, old, new string
	// want is a part of what is said about it.
	want string
	// build is the folder to build, if it is not the one that the file is in.
	build string
}

// make returns the tree with the mistake in it.
func (m mistake) make(t *testing.T) Tree {
	t.Helper()
	tree, err := repositoryTree()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(tree[m.file], []byte(m.old)) {
		t.Fatalf("%s does not hold %q", m.file, m.old)
	}
	tree = maps.Clone(tree)
	tree[m.file] = bytes.Replace(tree[m.file], []byte(m.old), []byte(m.new), 1)
	return tree
}

// checkBuilds checks what kustomize makes of the mistake's file.
func (m mistake) checkBuilds(c *check) {
	parts := strings.Split(m.file, "/")
	switch {
	case m.build != "":
		c.checkBuildOf(m.build, "")
	case parts[0] != "k8s":
	case parts[1] == "base":
		c.checkBuildOf(knativeOverlay, "")
	case parts[1] == "components":
		c.checkBuildOf(knativeOverlay, strings.Join(parts[:3], "/"))
	default:
		c.checkBuildOf(strings.Join(parts[:3], "/"), "")
	}
}

// notice makes each mistake and expects its builds and parts of the checks to
// say so.
func notice(t *testing.T, mistakes []mistake, parts ...func(*check)) {
	t.Helper()
	for _, m := range mistakes {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			c := newCheck(m.make(t))
			m.checkBuilds(c)
			for _, part := range parts {
				part(c)
			}
			c.checkStarts()
			found := c.result().Findings
			if !slices.ContainsFunc(found, func(f Finding) bool { return strings.Contains(f.String(), m.want) }) {
				t.Errorf("nothing says %q; found %v", m.want, found)
			}
		})
	}
}
