package main

import (
	"context"
	"os/exec"
	"regexp"
)

var versionPattern = regexp.MustCompile(`\d+\.\d+\.\d+`)

// firstVersion is the version that a program tells of itself.
func firstVersion(ctx context.Context, path string) string {
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return "of unknown version"
	}
	return versionPattern.FindString(string(out))
}
