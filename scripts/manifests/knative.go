package main

import (
	"slices"
	"strings"
)

// internal are the functions that only the platform and the bridge call.
var internal = []string{"order-consumer", "expiry-cron"}

// graceMin is how long Knative must give a function to end, in seconds: its
// queue-proxy alone waits for 30 s without a request.
const graceMin = 60

// checkKnative checks what Knative accepts but does not do as one would think.
func (c *check) checkKnative(o Object) {
	if !o.isKnative() {
		return
	}
	for key := range o.GetAnnotations() {
		if strings.HasPrefix(key, "autoscaling.") {
			c.found(o, "%s belongs to spec.template.metadata", key)
		}
	}
	local := o.GetLabels()["networking.knative.dev/visibility"] == "cluster-local"
	if slices.Contains(internal, o.GetName()) != local {
		c.found(o, "visibility: only %s are cluster-local", strings.Join(internal, " and "))
	}
	annotations, _ := o.at("spec", "template", "metadata", "annotations").(map[string]any)
	if annotations["autoscaling.knative.dev/min-scale"] != "0" {
		c.found(o, "min-scale is not 0: it would never sleep")
	}
	if _, ok := annotations["autoscaling.knative.dev/max-scale"]; !ok {
		c.found(o, "no max-scale")
	}
	if seconds, _ := o.at("spec", "template", "spec", "timeoutSeconds").(float64); seconds < graceMin {
		c.found(o, "timeoutSeconds is %v, less than %d: pods would be killed before they drain", seconds, graceMin)
	}
}

// checkSinks checks that sinks and subjects exist.
func (c *check) checkSinks(o Object) {
	refs := [][]string{{"spec", "sink", "ref"}, {"spec", "subject"}, {"spec", "subscriber", "ref"}, {"spec", "channel"}, {"spec", "delivery", "deadLetterSink", "ref"}, {"spec", "scaleTargetRef"}}
	for _, keys := range refs {
		ref, ok := o.at(keys...).(map[string]any)
		if !ok {
			continue
		}
		kind, _ := ref["kind"].(string)
		if kind == "" {
			kind = "Deployment"
		}
		name, _ := ref["name"].(string)
		target := c.object(kind, o.GetNamespace(), name)
		if target == nil || kind == "Service" && !target.isKnative() {
			c.found(o, "%s: there is no %s %s", strings.Join(keys, "."), kind, name)
		}
	}
	targets, _ := o.at("spec", "targetRefs").([]any)
	for _, t := range targets {
		target := Object{}
		target.Object, _ = t.(map[string]any)
		if c.object(target.textAt("kind"), o.GetNamespace(), target.textAt("name")) == nil {
			c.found(o, "there is no %s %s", target.textAt("kind"), target.textAt("name"))
		}
	}
	if o.GetKind() == "PingSource" && o.textAt("spec", "sink", "ref", "name") != "expiry-cron" {
		c.found(o, "the cron does not go to expiry-cron")
	}
	if o.GetKind() == "SinkBinding" && o.textAt("spec", "sink", "ref", "name") != "order-consumer" {
		c.found(o, "the bridge does not post to order-consumer")
	}
	if o.GetKind() == "Subscription" {
		for _, field := range []string{"retry", "backoffPolicy", "backoffDelay", "timeout", "deadLetterSink"} {
			if o.at("spec", "delivery", field) == nil {
				c.found(o, "delivery has no %s", field)
			}
		}
	}
}
