package stage

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"seckill/shared/servers"
)

// Names are the functions, in the order in which they are started.
func Names() []string {
	return []string{"seckill-http", "order-consumer", "expiry-cron", "item-detail", "order-http", "nats-bridge"}
}

// Mutant is an exact change of one source file.
type Mutant struct {
	File     string // below the module's root
	Old, New string
}

// Build makes programs of the named functions, each with the changes applied,
// and returns their paths by name.
func Build(ctx context.Context, names []string, mutants ...Mutant) (map[string]string, error) {
	packages := make(map[string]string, len(names))
	for _, name := range names {
		packages[name] = "seckill/functions/" + name + "/cmd"
	}
	return build(ctx, packages, mutants)
}

// BuildTool makes a program of the operator's tool, which carries the schema.
func BuildTool(ctx context.Context, mutants ...Mutant) (string, error) {
	paths, err := build(ctx, map[string]string{"seckillctl": "seckill/scripts/seckillctl"}, mutants)
	return paths["seckillctl"], err
}

func build(ctx context.Context, packages map[string]string, mutants []Mutant) (map[string]string, error) {
	dir, err := servers.NewDir("bin")
	if err != nil {
		return nil, err
	}
	flags := []string{"build", "-ldflags=-s -w"}
	if len(mutants) > 0 {
		overlay, err := overlay(ctx, dir, mutants)
		if err != nil {
			return nil, err
		}
		flags = append(flags, "-overlay", overlay)
	}
	paths := make(map[string]string, len(packages))
	for name, pkg := range packages {
		paths[name] = filepath.Join(dir, name)
		out, err := exec.CommandContext(ctx, "go", append(flags, "-o", paths[name], pkg)...).CombinedOutput() //nolint:gosec // our own packages
		if err != nil {
			return nil, fmt.Errorf("build %s: %w\n%s", name, err, out)
		}
	}
	return paths, nil
}

// overlay writes the changed files and the list that go build takes. A text
// that is not there exactly once is an error: a mutant that mutates nothing
// would prove nothing.
func overlay(ctx context.Context, dir string, mutants []Mutant) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	root := strings.TrimSpace(string(out))
	texts, replace := map[string]string{}, map[string]string{}
	for i, m := range mutants {
		path := filepath.Join(root, m.File)
		if _, ok := texts[path]; !ok {
			text, err := os.ReadFile(path) //nolint:gosec // a file of this module
			if err != nil {
				return "", fmt.Errorf("read what is mutated: %w", err)
			}
			texts[path] = string(text)
			replace[path] = filepath.Join(dir, fmt.Sprint("mutated-", i, filepath.Ext(path)))
		}
		if n := strings.Count(texts[path], m.Old); n != 1 {
			return "", fmt.Errorf("%s has the text to mutate %d times, not once: %q", m.File, n, m.Old)
		}
		texts[path] = strings.Replace(texts[path], m.Old, m.New, 1)
	}
	for path, to := range replace {
		if err := os.WriteFile(to, []byte(texts[path]), 0o600); err != nil {
			return "", fmt.Errorf("write what is mutated: %w", err)
		}
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", fmt.Errorf("encode the overlay: %w", err)
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, list, 0o600); err != nil {
		return "", fmt.Errorf("write the overlay: %w", err)
	}
	return file, nil
}
