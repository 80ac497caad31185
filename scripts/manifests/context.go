package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
)

// checkContext makes the folders that an image is built from, as faas-cli
// makes them and as Docker sees them, and checks that Go finds everything
// there that every function imports.
func (c *check) checkContext() {
	s, err := c.tree.readStack(nil)
	if err != nil {
		return // noted by checkStack
	}
	contexts := map[string]Tree{"stack.yml": c.faasContext(s.Configuration.Copy), ".dockerignore": c.tree}
	for where, files := range contexts {
		ignore := "functions/Dockerfile.dockerignore"
		if where == "stack.yml" {
			ignore = "Dockerfile.dockerignore"
			if files["Dockerfile"] == nil {
				c.report(where, "no Dockerfile at the root of the context")
			}
		}
		if where == ".dockerignore" {
			c.sameIgnored()
		}
		seen, err := unignored(files, files[ignore])
		if err == nil {
			err = c.resolve(seen)
		}
		if err != nil {
			c.report(where, "context: %v", err)
		}
	}
	dockerfile := string(c.tree["functions/Dockerfile"])
	for _, want := range []string{"CGO_ENABLED=0", "USER 65532:65532", "distroless/static", "ARG FUNCTION\n", "EXPOSE 8080", "${BUILDPLATFORM", "GOARCH=${TARGETARCH}"} {
		if !strings.Contains(dockerfile, want) {
			c.report("functions/Dockerfile", "has no %s", want)
		}
	}
}

// sameIgnored checks that builders that know only the root's .dockerignore see
// the same.
func (c *check) sameIgnored() {
	rules := func(name string) string {
		_, text, _ := strings.Cut(string(c.tree[name]), "\n")
		return text
	}
	if rules(".dockerignore") != rules("functions/Dockerfile.dockerignore") {
		c.report(".dockerignore", "differs from functions/Dockerfile.dockerignore")
	}
}

// faasContext is what faas-cli copies for a function: the contents of the
// handler's folder, without what it makes itself, and the folders and files of
// "copy" at their own paths.
func (c *check) faasContext(copies []string) Tree {
	files := Tree{}
	for _, name := range c.tree.under("functions") {
		rest := strings.TrimPrefix(name, "functions/")
		if first, _, _ := strings.Cut(rest, "/"); first != "build" && first != "template" {
			files[rest] = c.tree[name]
		}
	}
	for _, wanted := range copies {
		clean := path.Clean(wanted)
		if clean == "." || strings.HasPrefix(clean, "..") || path.IsAbs(clean) {
			c.report("stack.yml", "copy: %s is a path that faas-cli forbids", wanted)
			continue
		}
		found := c.tree.under(clean)
		if _, ok := c.tree[clean]; ok {
			found = append(found, clean)
		}
		if len(found) == 0 {
			c.report("stack.yml", "copy: there is no %s", wanted)
		}
		for _, name := range found {
			files[name] = c.tree[name]
		}
	}
	return files
}

// unignored returns the files that a .dockerignore lets through.
func unignored(files Tree, ignore []byte) (Tree, error) {
	patterns, err := ignorefile.ReadAll(strings.NewReader(string(ignore)))
	if err != nil {
		return nil, err
	}
	matcher, err := patternmatcher.New(patterns)
	if err != nil {
		return nil, err
	}
	seen := Tree{}
	for name, data := range files {
		ignored, err := matcher.MatchesOrParentMatches(name)
		if err != nil {
			return nil, err
		}
		if !ignored {
			seen[name] = data
		}
	}
	return seen, nil
}

// resolve lets Go look up every import of every function in a context.
func (c *check) resolve(files Tree) error {
	dir, err := os.MkdirTemp("", "context")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a folder of temporary files
	for name, data := range files {
		where := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(where), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(where, data, 0o600); err != nil {
			return err
		}
	}
	list := []string{"list", "-deps"}
	for _, function := range c.tree.functions() {
		list = append(list, "./functions/"+function+"/cmd")
	}
	ctx, cancel := context.WithTimeout(context.Background(), commandMax)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", list...)
	cmd.Dir = dir
	if _, err := cmd.Output(); err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		return err
	}
	return nil
}
