package main

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
)

// checkCompose checks scripts/compose.yaml: its schema by Compose's own
// library, then that all functions are there and fit the code.
func (c *check) checkCompose() {
	const where = "scripts/compose.yaml"
	project, err := loader.LoadWithContext(context.Background(), types.ConfigDetails{
		WorkingDir:  "/scripts",
		ConfigFiles: []types.ConfigFile{{Filename: "compose.yaml", Content: c.tree[where]}},
		Environment: types.Mapping{},
	}, func(o *loader.Options) { o.Profiles = []string{"*"} })
	if err != nil {
		c.report(where, "%v", err)
		return
	}
	for name, service := range project.Services {
		c.checkComposeFiles(where, service)
		if service.Build == nil {
			continue
		}
		program := c.composeProgram(service)
		if program == "" || service.Image != "seckill/"+program {
			c.report(where, "%s builds image %s of program %q", name, service.Image, program)
			continue
		}
		if !service.ReadOnly {
			c.report(where, "%s has a root that can be written", name)
		}
		env := map[string]string{}
		for key, value := range service.Environment {
			if value != nil {
				env[key] = *value
			}
		}
		c.checkStart(where+": "+name, Start{Program: program, Env: env})
	}
	for _, function := range c.tree.functions() {
		if _, ok := project.Services[function]; !ok {
			c.report(where, "%s is not there", function)
		}
	}
	c.checkGateway(slices.Collect(maps.Keys(project.Services)))
}

// composeProgram returns the program that a service is built of, empty if the
// Dockerfile could not build it.
func (c *check) composeProgram(service types.ServiceConfig) string {
	b := service.Build
	if b.Dockerfile != "functions/Dockerfile" || b.Context != "/" {
		return ""
	}
	if f := b.Args["FUNCTION"]; f != nil && slices.Contains(c.tree.functions(), *f) {
		return *f
	}
	if m := b.Args["MAIN"]; m != nil && *m == "./scripts/seckillctl" {
		return "seckillctl"
	}
	return ""
}

// checkComposeFiles checks that the files that a service mounts are there.
func (c *check) checkComposeFiles(where string, service types.ServiceConfig) {
	for _, volume := range service.Volumes {
		if volume.Type != "bind" {
			continue
		}
		if _, ok := c.tree[strings.TrimPrefix(volume.Source, "/")]; !ok {
			c.report(where, "%s mounts %s, which is not there", service.Name, volume.Source)
		}
	}
}

var (
	location = regexp.MustCompile(`location (/[a-z]+/?) \{([^}]*)\}`)
	upstream = regexp.MustCompile(`set \$function http://([a-z-]+):8080;`)
)

// checkGateway checks that each path of the gateway goes to a function that
// serves it.
func (c *check) checkGateway(services []string) {
	const where = "scripts/compose/gateway.conf"
	found := location.FindAllSubmatch(c.tree[where], -1)
	if len(found) == 0 {
		c.report(where, "no location")
	}
	for _, m := range found {
		to := upstream.FindSubmatch(m[2])
		if to == nil || !slices.Contains(services, string(to[1])) {
			c.report(where, "location %s goes to no service", m[1])
			continue
		}
		c.checkPath(where, string(m[1]), string(to[1]))
	}
	if !strings.Contains(string(c.tree[where]), "proxy_next_upstream off;") {
		c.report(where, "may repeat a POST")
	}
}
