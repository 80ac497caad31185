package main

import (
	"slices"
	"strconv"
	"strings"
)

// checkPrewarm checks that the template that warms up before a sale and cools
// down after it fits the functions' own manifests.
func (c *check) checkPrewarm() {
	c.build = "k8s/prewarm/knative"
	jobs, err := c.tree.build(c.build, "")
	if err != nil {
		return // noted where it was built
	}
	functions, err := c.tree.build("k8s/overlays/knative", "")
	if err != nil {
		return
	}
	for _, job := range jobs {
		if job.GetKind() != "CronJob" {
			continue
		}
		if job.at("spec", "suspend") != true {
			c.found(job, "a template must be suspended")
		}
		for _, container := range job.pod().Spec.Containers {
			i := slices.IndexFunc(functions, func(o Object) bool { return o.isKnative() && o.GetName() == container.Name })
			if i < 0 {
				c.found(job, "%s is no function", container.Name)
				continue
			}
			args := slices.Clone(container.Args)
			for j := range args {
				for _, e := range container.Env {
					args[j] = strings.ReplaceAll(args[j], "$("+e.Name+")", e.Value)
				}
			}
			c.checkWarmth(job, args, functions[i])
		}
	}
}

// checkWarmth checks what one container of a job annotates.
func (c *check) checkWarmth(job Object, args []string, function Object) {
	if !slices.Contains(args, "serving.knative.dev/service="+function.GetName()+",serving.knative.dev/routingState=active") {
		c.found(job, "does not select the active revision of %s", function.GetName())
	}
	set := map[string]string{}
	for _, arg := range args {
		if key, value, ok := strings.Cut(arg, "="); ok && strings.HasPrefix(key, "autoscaling.knative.dev/") {
			set[strings.TrimPrefix(key, "autoscaling.knative.dev/")] = value
		}
	}
	if strings.HasSuffix(job.GetName(), "-up") {
		if n, err := strconv.Atoi(set["min-scale"]); err != nil || n < 2 || set["min-scale"] != set["activation-scale"] {
			c.found(job, "%s: min-scale %q and activation-scale %q: must be one number above 1", function.GetName(), set["min-scale"], set["activation-scale"])
		}
		return
	}
	for _, key := range []string{"min-scale", "activation-scale"} {
		want, _ := function.at("spec", "template", "metadata", "annotations", "autoscaling.knative.dev/"+key).(string)
		if set[key] != want {
			c.found(job, "%s: sets %s to %q, its manifest says %q", function.GetName(), key, set[key], want)
		}
	}
}
