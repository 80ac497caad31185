package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// functions are those that must reach zero.
var functions = append([]string{"seckill-http", "item-detail", "order-http"}, internal...)

// internal are those of them that are cluster-local.
var internal = []string{"order-consumer", "expiry-cron"}

// images are everything that is built here.
var images = append([]string{"nats-bridge", "seckillctl"}, functions...)

// optional are the kinds that a cluster may lack.
var optional = map[string]string{
	"PingSource":     "pingsources.sources.knative.dev",
	"SinkBinding":    "sinkbindings.sources.knative.dev",
	"Gateway":        "gateways.gateway.networking.k8s.io",
	"HTTPRoute":      "httproutes.gateway.networking.k8s.io",
	"ReferenceGrant": "referencegrants.gateway.networking.k8s.io",
	"ScaledObject":   "scaledobjects.keda.sh",
}

// quick makes what takes minutes by default take seconds, and lets everything
// start at the same time on a node of two cores.
const quick = `
patches:
  - target: {group: serving.knative.dev, kind: Service}
    patch: |-
      apiVersion: serving.knative.dev/v1
      kind: Service
      metadata:
        name: any
      spec:
        template:
          metadata:
            annotations:
              autoscaling.knative.dev/activation-scale: null
              autoscaling.knative.dev/scale-down-delay: "0s"
              autoscaling.knative.dev/scale-to-zero-pod-retention-period: "0s"
              queue.sidecar.serving.knative.dev/cpu-resource-request: 10m
  - target: {group: serving.knative.dev, kind: Service}
    patch: |-
      - {op: replace, path: /spec/template/spec/containers/0/resources/requests/cpu, value: 10m}
  - target: {group: serving.knative.dev, kind: Service, name: expiry-cron}
    patch: |-
      - {op: add, path: /spec/template/spec/containers/0/env/-, value: {name: AWAKE_AHEAD, value: 5s}}
      - {op: add, path: /spec/template/spec/containers/0/env/-, value: {name: REST_AFTER_CLOSE, value: 0s}}
`

// byAddress stands in for a SinkBinding.
const byAddress = `  - target: {kind: Deployment, name: nats-bridge}
    patch: |-
      - {op: add, path: /spec/template/spec/containers/0/env/-, value: {name: TARGET_URL, value: "http://order-consumer.seckill.svc.cluster.local"}}
`

// deployment is an overlay as it is applied.
type deployment struct {
	options
	manifests string
	config    string // the ConfigMap's name
}

// prepare renders the overlay for this cluster.
func prepare(ctx context.Context, o options) (*deployment, error) {
	if !knows(ctx, "services.serving.knative.dev") {
		return nil, errors.New("the cluster of the current context has no Knative Serving")
	}
	dir, err := os.MkdirTemp("", "e2e")
	if err != nil {
		return nil, fmt.Errorf("render %s: %w", o.overlay, err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a folder of temporary files
	overlay, err := filepath.Abs(o.overlay)
	if err != nil {
		return nil, fmt.Errorf("render %s: %w", o.overlay, err)
	}
	// kustomize wants paths from where its file is.
	if overlay, err = filepath.Rel(dir, overlay); err != nil {
		return nil, fmt.Errorf("render %s: %w", o.overlay, err)
	}
	text := "kind: Kustomization\nresources: [" + overlay + "]\nimages:\n"
	for _, name := range images {
		text += fmt.Sprintf("  - {name: ghcr.io/example/%s, newName: %s/%s, newTag: %q}\n", name, o.registry, name, o.tag)
	}
	text += quick
	if !knows(ctx, optional["SinkBinding"]) {
		text += byAddress
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		return nil, fmt.Errorf("render %s: %w", o.overlay, err)
	}
	rendered, err := kubectl(ctx, nil, "kustomize", dir)
	if err != nil {
		return nil, err
	}
	d := &deployment{options: o, config: regexp.MustCompile(`(?m)^  name: (seckill-[a-z0-9]{10})$`).FindString(rendered)}
	d.config = strings.TrimPrefix(strings.TrimSpace(d.config), "name: ")
	d.manifests = known(ctx, rendered)
	return d, nil
}

var kindLine = regexp.MustCompile(`(?m)^kind: (\w+)$`)

// known leaves out the manifests of kinds that the cluster lacks.
func known(ctx context.Context, rendered string) string {
	var kept []string
	lacking := map[string]bool{}
	for _, manifest := range strings.Split(rendered, "\n---\n") {
		kind := ""
		if m := kindLine.FindStringSubmatch(manifest); m != nil {
			kind = m[1]
		}
		crd, isOptional := optional[kind]
		if _, asked := lacking[kind]; isOptional && !asked {
			lacking[kind] = !knows(ctx, crd) || !placed(ctx, manifest)
			if lacking[kind] {
				fmt.Printf("the cluster has no %s, or not its namespace: left out\n", kind)
			}
		}
		if !lacking[kind] {
			kept = append(kept, manifest)
		}
	}
	return strings.Join(kept, "\n---\n")
}

var namespaceLine = regexp.MustCompile(`(?m)^  namespace: (\S+)$`)

// placed reports whether a manifest's namespace is there or comes along: the
// ReferenceGrant lies in Kourier's, which is not there with another ingress.
func placed(ctx context.Context, manifest string) bool {
	m := namespaceLine.FindStringSubmatch(manifest)
	if m == nil || m[1] == namespace {
		return true
	}
	_, err := kubectl(ctx, nil, "get", "namespace", m[1], "-o", "name")
	return err == nil
}

// deploy applies everything and waits until it is ready.
func (d *deployment) deploy(ctx context.Context) error {
	fmt.Println("deploying", d.overlay)
	if _, err := kubectl(ctx, nil, "delete", "job", "migrate", "-n", namespace, "--ignore-not-found"); err != nil {
		return err
	}
	if _, err := kubectl(ctx, []byte(d.manifests), "apply", "-f", "-"); err != nil {
		return err
	}
	waits := [][]string{
		{"wait", "-n", namespace, "--for=condition=Complete", "--timeout=5m", "job/migrate"},
		{"rollout", "status", "-n", namespace, "--timeout=5m", "deployment/nats-bridge"},
	}
	for _, function := range functions {
		waits = append(waits, []string{"wait", "-n", namespace, "--for=condition=Ready", "--timeout=5m", "ksvc/" + function})
	}
	for _, wait := range waits {
		if _, err := kubectl(ctx, nil, wait...); err != nil {
			return err
		}
	}
	return nil
}

// removeMax bounds the taking away.
const removeMax = 3 * time.Minute

// remove takes away what deploy has applied.
func (d *deployment) remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, removeMax)
	defer cancel()
	fmt.Println("taking everything away")
	_, err := kubectl(ctx, []byte(withoutNamespace(d.manifests)), "delete", "--ignore-not-found", "--wait=false", "-f", "-")
	return err
}

// withoutNamespace keeps the namespace, in which Secrets may be that somebody
// else has made.
func withoutNamespace(manifests string) string {
	var kept []string
	for _, manifest := range strings.Split(manifests, "\n---\n") {
		if !strings.Contains("\n"+manifest, "\nkind: Namespace\n") {
			kept = append(kept, manifest)
		}
	}
	return strings.Join(kept, "\n---\n")
}
