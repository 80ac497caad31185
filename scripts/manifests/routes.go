package main

import (
	"regexp"
	"strings"
)

// checkRoute checks that an HTTPRoute sends each path to the function that
// serves it, with a time limit and without repeating requests.
func (c *check) checkRoute(o Object) {
	if o.GetKind() != "HTTPRoute" {
		return
	}
	rules, _ := o.at("spec", "rules").([]any)
	for _, r := range rules {
		rule := Object{}
		rule.Object, _ = r.(map[string]any)
		if rule.textAt("timeouts", "request") == "" {
			c.found(o, "a rule has no timeouts.request")
		}
		if rule.at("retry") != nil {
			c.found(o, "a rule retries: a POST must never be repeated by a gateway")
		}
		function := c.rewrittenTo(rule)
		matches, _ := rule.at("matches").([]any)
		for _, m := range matches {
			match := Object{}
			match.Object, _ = m.(map[string]any)
			c.checkPath(c.build+": "+o.String(), match.textAt("path", "value"), function)
		}
		c.checkBackend(o, rule)
	}
}

var (
	functionHost = regexp.MustCompile(`^([a-z-]+)\.seckill\.svc\.cluster\.local$`)
	functionPath = regexp.MustCompile(`^/function/([a-z-]+)(/.*)$`)
)

// rewrittenTo returns the function that a rule's rewrite names.
func (c *check) rewrittenTo(rule Object) string {
	filters, _ := rule.at("filters").([]any)
	for _, f := range filters {
		filter := Object{}
		filter.Object, _ = f.(map[string]any)
		if m := functionHost.FindStringSubmatch(filter.textAt("urlRewrite", "hostname")); m != nil {
			return m[1]
		}
		if m := functionPath.FindStringSubmatch(filter.textAt("urlRewrite", "path", "replacePrefixMatch")); m != nil {
			return m[1]
		}
	}
	return ""
}

// checkPath checks that a function's code serves the paths below prefix, and
// that no internal one is public.
func (c *check) checkPath(where, prefix, function string) {
	for _, hidden := range internal {
		if function == hidden {
			c.report(where, "%s is open to the outside at %s", function, prefix)
		}
	}
	prefix = strings.TrimSuffix(prefix, "/")
	for _, name := range c.tree.under("functions/" + function) {
		if strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") &&
			regexp.MustCompile(`"([A-Z]+ )?`+regexp.QuoteMeta(prefix)+`[/"]`).Match(c.tree[name]) {
			return
		}
	}
	c.report(where, "%s goes to %q, whose code does not serve it", prefix, function)
}

// checkBackend checks that a rule sends to the platform's own ingress.
func (c *check) checkBackend(o, rule Object) {
	backends, _ := rule.at("backendRefs").([]any)
	for _, b := range backends {
		backend := Object{}
		backend.Object, _ = b.(map[string]any)
		name, namespace := backend.textAt("name"), backend.textAt("namespace")
		if namespace != "" && namespace != o.GetNamespace() && !c.granted(o.GetNamespace(), namespace, name) {
			c.found(o, "no ReferenceGrant lets it send to %s/%s", namespace, name)
		}
		if name != "kourier-internal" && name != "gateway" {
			c.found(o, "sends to %s, which is no platform's ingress", name)
		}
	}
	if len(backends) == 0 {
		c.found(o, "a rule has no backend")
	}
}

// granted reports whether routes of one namespace may send to a Service in
// another.
func (c *check) granted(from, namespace, service string) bool {
	for _, o := range c.objects {
		if o.GetKind() != "ReferenceGrant" || o.GetNamespace() != namespace {
			continue
		}
		text := string(o.text)
		if strings.Contains(text, "namespace: "+from+"\n") && strings.Contains(text, "name: "+service+"\n") {
			return true
		}
	}
	return false
}
