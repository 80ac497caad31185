// Command manifests checks everything that is deployed, without a cluster:
// what kustomize makes of k8s, stack.yml and scripts/compose.yaml, each by the
// platform's own rules and against the code. It is a module of its own, so
// that the functions do not depend on what it needs. Run it in its folder.
//
// CRDs come from Go modules and, if it is there, from the folder CRDS_DIR. It
// says what it could not check, and exits 1 if something is wrong.
package main

import (
	"fmt"
	"os"
)

func main() {
	t, err := readTree(repository)
	if err != nil {
		fmt.Fprintln(os.Stderr, "manifests:", err)
		os.Exit(1)
	}
	r := Check(t)
	removeLoaders()
	for _, f := range r.Findings {
		fmt.Fprintln(os.Stderr, f)
	}
	for _, what := range r.Unchecked {
		fmt.Fprintln(os.Stderr, "NOT CHECKED:", what)
	}
	fmt.Printf("manifests: %d objects and %d starts checked, %d findings, %d things not checked\n",
		r.Objects, r.Starts, len(r.Findings), len(r.Unchecked))
	if len(r.Findings) > 0 {
		os.Exit(1)
	}
}
