package main

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/drone/envsubst"
	"gopkg.in/yaml.v3"
)

// stack is stack.yml, every field that faas-cli reads.
type stack struct {
	Version  string
	Provider struct {
		Name    string
		Gateway string
	}
	Functions     map[string]stackFunction
	Configuration struct {
		Copy []string
	}
}

// stackFunction is one function in stack.yml.
type stackFunction struct {
	Lang         string
	Handler      string
	Image        string
	BuildArgs    map[string]string `yaml:"build_args"`
	ReadOnlyRoot bool              `yaml:"readonly_root_filesystem"`
	Environment  map[string]string
	Secrets      []string
	Labels       map[string]string
	Annotations  map[string]string
	Requests     resources
	Limits       resources
}

type resources struct{ CPU, Memory string }

// readStack reads stack.yml as faas-cli does: substituted as text, then parsed.
// Unlike faas-cli it takes no field that it does not know.
func (t Tree) readStack(env map[string]string) (stack, error) {
	var s stack
	text, err := envsubst.Eval(string(t["stack.yml"]), func(name string) string { return env[name] })
	if err != nil {
		return s, fmt.Errorf("substitute: %w", err)
	}
	decoder := yaml.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.KnownFields(true)
	return s, decoder.Decode(&s)
}

// standard are the values that make the functions sleep on OpenFaaS Standard.
var standard = map[string]string{
	"SCALE_TO_ZERO": "true", "SECKILL_MAX": "50", "CRON_SCHEDULE": "@every 1h",
	"CRON_URL": "http://gateway.openfaas:8080/function/expiry-cron",
}

// checkStack checks stack.yml as it stands for the Community Edition, and with
// the values for Standard.
func (c *check) checkStack() {
	community, err := c.tree.readStack(nil)
	if err != nil {
		c.report("stack.yml", "%v", err)
		return
	}
	if community.Provider.Name != "openfaas" || community.Version != "1.0" {
		c.report("stack.yml", "version or provider is not OpenFaaS'")
	}
	if got, want := slices.Sorted(maps.Keys(community.Functions)), c.tree.functions(); !slices.Equal(got, want) {
		c.report("stack.yml", "has the functions %v, the code has %v", got, want)
	}
	for name, f := range community.Functions {
		where := "stack.yml: " + name
		c.checkBuild(where, name, f)
		c.checkCommunity(where, f)
		c.checkTriggers(where, name, f)
		c.checkStart(where, Start{Program: name, Env: f.Environment, Secrets: f.Secrets})
		c.alike(where, name, f)
	}
	c.checkStandard()
}

// checkBuild checks how a function's image is made.
func (c *check) checkBuild(where, name string, f stackFunction) {
	if f.Lang != "dockerfile" || f.Handler != "./functions" || f.BuildArgs["FUNCTION"] != name {
		c.report(where, "is not built by functions/Dockerfile with FUNCTION=%s", name)
	}
	if f.Image != registry+name+":latest" {
		c.report(where, "image %s, want %s%s:latest unless REGISTRY and TAG say otherwise", f.Image, registry, name)
	}
	if !f.ReadOnlyRoot {
		c.report(where, "readonly_root_filesystem is not true")
	}
	if f.Requests.Memory == "" || f.Limits.Memory == "" || f.Requests.CPU == "" {
		c.report(where, "no requests and limits")
	}
}

// scale is the prefix of labels about scaling.
const scale = "com.openfaas.scale."

// checkCommunity checks what the Community Edition answers 400 to.
func (c *check) checkCommunity(where string, f stackFunction) {
	for label, value := range f.Labels {
		switch label {
		case scale + "zero-duration", scale + "target", scale + "type":
			c.report(where, "%s is refused by the Community Edition", label)
		case scale + "zero":
			if value == "true" {
				c.report(where, "%s: \"true\" is refused by the Community Edition", label)
			}
		case scale + "min", scale + "max":
			if n, err := strconv.Atoi(value); err != nil || n < 1 || n > communityMax {
				c.report(where, "%s is %q, the Community Edition takes 1 to %d", label, value, communityMax)
			}
		}
	}
	for _, label := range []string{"min", "max", "zero"} {
		if f.Labels[scale+label] == "" {
			c.report(where, "no label %s%s", scale, label)
		}
	}
}

// communityMax is how many replicas the Community Edition allows.
const communityMax = 5

func (c *check) checkTriggers(where, name string, f stackFunction) {
	topic, schedule := f.Annotations["topic"], f.Annotations["schedule"]
	if strings.Contains(topic, ",") {
		c.report(where, "topic %q: the Community Edition takes one", topic)
	}
	if (name == "expiry-cron") != (topic == "cron-function") {
		c.report(where, "topic %q: expiry-cron and nothing else is triggered by cron", topic)
	}
	if schedule != "" || topic == "cron-function" {
		if _, err := cronConnector.Parse(schedule); err != nil {
			c.report(where, "schedule %q: %v", schedule, err)
		}
	}
	if name == "nats-bridge" && (f.Labels[scale+"min"] != f.Labels[scale+"max"] || f.Labels[scale+"zero"] != "false") {
		c.report(where, "is no static function: min must be max, zero false")
	}
	if target := f.Environment["TARGET_URL"]; name == "nats-bridge" && !strings.HasSuffix(target, "/function/order-consumer") {
		c.report(where, "TARGET_URL %q is not order-consumer", target)
	}
}

// checkStandard checks that values alone make all but the bridge sleep.
func (c *check) checkStandard() {
	s, err := c.tree.readStack(standard)
	if err != nil {
		c.report("stack.yml for Standard", "%v", err)
		return
	}
	for name, f := range s.Functions {
		where := "stack.yml for Standard: " + name
		if got, want := f.Labels[scale+"zero"], strconv.FormatBool(name != "nats-bridge"); got != want {
			c.report(where, "%szero is %q, want %s", scale, got, want)
		}
		if name == "seckill-http" && f.Labels[scale+"max"] != standard["SECKILL_MAX"] {
			c.report(where, "%smax does not follow SECKILL_MAX", scale)
		}
		c.checkTriggers(where, name, f)
		c.checkStart(where, Start{Program: name, Env: f.Environment, Secrets: f.Secrets})
	}
	if cron := s.Functions["expiry-cron"]; cron.Annotations["schedule"] != standard["CRON_SCHEDULE"] {
		c.report("stack.yml for Standard", "the schedule does not follow CRON_SCHEDULE")
	}
	if bridge := s.Functions["nats-bridge"]; bridge.Environment["CRON_URL"] != standard["CRON_URL"] {
		c.report("stack.yml for Standard", "the bridge does not follow CRON_URL")
	}
}

// alike checks that a function gets the same secrets on both platforms; a
// credentials file for NATS and the secret of tickets are added while deploying
// on OpenFaaS.
func (c *check) alike(where, name string, f stackFunction) {
	for _, o := range c.knative {
		if o.program != name {
			continue
		}
		there := slices.DeleteFunc(slices.Clone(o.secrets), func(s string) bool { return s == "nats-creds" || s == "ticket-secret" })
		slices.Sort(there)
		if here := slices.Sorted(slices.Values(f.Secrets)); !slices.Equal(here, there) {
			c.report(where, "has the secrets %v, on Knative %v", here, there)
		}
	}
}
