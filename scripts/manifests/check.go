package main

import (
	"slices"
	"strings"
	"sync"
)

// repository is the root of the files that are checked.
const repository = "../.."

// check is one run over a Tree.
type check struct {
	tree  Tree
	build string // what is being checked
	// objects are those of the build.
	objects []Object
	knative []knativeStart
	starts  []placed

	findings  []Finding
	seen      map[Finding]bool
	unchecked map[string]bool
	objectsN  int
}

// knativeStart says which secrets a function gets on Knative.
type knativeStart struct {
	program string
	secrets []string
}

// A Report is what a run over a Tree found.
type Report struct {
	Findings []Finding
	// Unchecked names what could not be looked at, and why.
	Unchecked []string
	// Objects and Starts count what was looked at: manifests, and ways in
	// which a program is started.
	Objects, Starts int
}

// Check runs every check on a Tree.
func Check(t Tree) Report {
	c := newCheck(t)
	c.checkKustomize()
	c.checkStack()
	c.checkCompose()
	c.checkPrewarm()
	c.checkContext()
	c.checkStarts()
	_, missing := readSchemas()
	for _, m := range missing {
		c.unchecked[m] = true
	}
	return c.result()
}

func newCheck(t Tree) *check {
	return &check{tree: t, seen: map[Finding]bool{}, unchecked: map[string]bool{}}
}

func (c *check) result() Report {
	r := Report{Findings: c.findings, Objects: c.objectsN, Starts: len(c.starts)}
	for what := range c.unchecked {
		r.Unchecked = append(r.Unchecked, what)
	}
	slices.Sort(r.Unchecked)
	slices.SortFunc(r.Findings, func(a, b Finding) int { return strings.Compare(a.String(), b.String()) })
	return r
}

// knativeOverlay is what components are checked on.
const knativeOverlay = "k8s/overlays/knative"

// checkKustomize checks what kustomize makes of every folder that is applied,
// and of the Knative overlay with each component. Folders inside an overlay are
// parts of it, and mean nothing alone.
func (c *check) checkKustomize() {
	builds, components := c.tree.kustomizations()
	for _, dir := range builds {
		if strings.Count(dir, "/") <= 2 {
			c.checkBuildOf(dir, "")
		}
	}
	for _, component := range components {
		c.checkBuildOf(knativeOverlay, component)
	}
}

// checkBuildOf checks everything that kustomize makes of a folder.
func (c *check) checkBuildOf(dir, component string) {
	c.build = dir
	if component != "" {
		c.build += " with " + component
	}
	objects, err := c.tree.build(dir, component)
	if err != nil {
		c.report(c.build, "%v", err)
		return
	}
	c.objects = objects
	c.objectsN += len(objects)
	for _, o := range objects {
		c.checkKind(o)
		c.checkCron(o)
		c.checkPod(o)
		c.checkKnative(o)
		c.checkSinks(o)
		c.checkRoute(o)
	}
	if strings.HasPrefix(dir, "k8s/overlays/") {
		c.checkNetwork()
	}
	if dir == knativeOverlay && component == "" {
		c.noteKnative()
	}
}

// noteKnative remembers how each function is started, to compare.
func (c *check) noteKnative() {
	for _, o := range c.objects {
		pod := o.pod()
		if pod == nil {
			continue
		}
		if program := c.programOf(pod.Spec.Containers[0].Image); program != "" {
			c.knative = append(c.knative, knativeStart{program, c.secretsOf(o, pod, &pod.Spec.Containers[0])})
		}
	}
}

// object returns the object of the build with this kind and name, nil if there
// is none.
func (c *check) object(kind, namespace, name string) *Object {
	i := slices.IndexFunc(c.objects, func(o Object) bool {
		return o.GetKind() == kind && o.GetNamespace() == namespace && o.GetName() == name
	})
	if i < 0 {
		return nil
	}
	return &c.objects[i]
}

// checkStarts starts every function's configuration as it would be.
func (c *check) checkStarts() {
	var wait sync.WaitGroup
	errs := make([]error, len(c.starts))
	slots := make(chan struct{}, 2)
	for i, s := range c.starts {
		wait.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			errs[i] = s.load()
		})
	}
	wait.Wait()
	for i, err := range errs {
		if err != nil {
			c.report(c.starts[i].where, "%v", err)
		}
	}
}
