package main

import (
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// programOf returns which program of ours an image holds: a function's name,
// "seckillctl", or empty for somebody else's.
func (c *check) programOf(image string) string {
	if !strings.HasPrefix(image, registry) {
		return ""
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(image, registry), ":")
	return name
}

// registry is where our images are said to be; users set their own.
const registry = "ghcr.io/example/"

// checkPod checks how a pod is run, ours or another's.
func (c *check) checkPod(o Object) {
	pod := o.pod()
	if pod == nil {
		return
	}
	s := pod.Spec
	if s.ServiceAccountName == "" && (s.AutomountServiceAccountToken == nil || *s.AutomountServiceAccountToken) {
		c.found(o, "automountServiceAccountToken is not false")
	}
	if s.EnableServiceLinks == nil || *s.EnableServiceLinks {
		c.found(o, "enableServiceLinks is not false")
	}
	for i := range s.Containers {
		c.checkContainer(o, pod, &s.Containers[i])
	}
}

func (c *check) checkContainer(o Object, pod *corev1.PodTemplateSpec, container *corev1.Container) {
	own, whole := container.SecurityContext, pod.Spec.SecurityContext
	if own == nil {
		own = &corev1.SecurityContext{}
	}
	if whole == nil {
		whole = &corev1.PodSecurityContext{}
	}
	isTrue := func(values ...*bool) bool {
		return slices.ContainsFunc(values, func(b *bool) bool { return b != nil && *b })
	}
	if !isTrue(own.RunAsNonRoot, whole.RunAsNonRoot) {
		c.found(o, "runAsNonRoot is not true")
	}
	if !isTrue(own.ReadOnlyRootFilesystem) {
		c.found(o, "readOnlyRootFilesystem is not true")
	}
	if own.AllowPrivilegeEscalation == nil || *own.AllowPrivilegeEscalation {
		c.found(o, "allowPrivilegeEscalation is not false")
	}
	if own.Capabilities == nil || !slices.Equal(own.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(own.Capabilities.Add) > 0 {
		c.found(o, "capabilities are not dropped")
	}
	if own.SeccompProfile == nil && whole.SeccompProfile == nil {
		c.found(o, "no seccompProfile")
	}
	if container.Resources.Requests.Memory().IsZero() || container.Resources.Limits.Memory().IsZero() {
		c.found(o, "memory is not requested and limited")
	}
	if program := c.programOf(container.Image); program != "" {
		c.checkProgram(o, pod, container, program)
	} else if strings.HasSuffix(container.Image, ":latest") || !strings.Contains(path.Base(container.Image), ":") {
		c.found(o, "image %s has no version", container.Image)
	}
}

// checkProgram checks a container of ours: its image, port, probes and start.
func (c *check) checkProgram(o Object, pod *corev1.PodTemplateSpec, container *corev1.Container, program string) {
	isFunction := slices.Contains(c.tree.functions(), program)
	if !isFunction && program != "seckillctl" {
		c.found(o, "image %s is of no program", container.Image)
		return
	}
	if isFunction {
		if len(container.Ports) != 1 || container.Ports[0].ContainerPort != 8080 {
			c.found(o, "the port is not 8080, where %s listens", program)
		}
		c.checkProbe(o, "readinessProbe", container.ReadinessProbe, "/_/ready")
		c.checkProbe(o, "livenessProbe", container.LivenessProbe, "/_/health")
		if pod.Labels["app.kubernetes.io/name"] != program {
			c.found(o, "label app.kubernetes.io/name is not %s: policies would not know the pod", program)
		}
	}
	if o.isKnative() && o.GetName() != program {
		c.found(o, "image %s is of another function", container.Image)
	}
	c.checkStart(c.build+": "+o.String(), Start{Program: program, Env: c.envOf(o, container), Secrets: c.secretsOf(o, pod, container)})
}

func (c *check) checkProbe(o Object, name string, probe *corev1.Probe, where string) {
	if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Path != where {
		c.found(o, "%s does not get %s", name, where)
		return
	}
	if o.isKnative() && name == "readinessProbe" && probe.PeriodSeconds != 0 {
		c.found(o, "%s has periodSeconds: the queue-proxy would ask seldom, and cold starts take longer", name)
	}
}

// envOf returns a container's environment as it will be.
func (c *check) envOf(o Object, container *corev1.Container) map[string]string {
	env := map[string]string{}
	for _, e := range container.Env {
		env[e.Name] = e.Value
		if e.ValueFrom == nil {
			continue
		}
		ref := e.ValueFrom.ConfigMapKeyRef
		if ref == nil {
			c.found(o, "%s does not come from a ConfigMap", e.Name)
			continue
		}
		config := c.object("ConfigMap", o.GetNamespace(), ref.Name)
		value, ok := "", false
		if config != nil {
			value, ok = config.at("data", ref.Key).(string)
		}
		if !ok {
			c.found(o, "%s: no key %s in ConfigMap %s", e.Name, ref.Key, ref.Name)
		}
		env[e.Name] = value
	}
	for _, binding := range c.objects {
		if binding.GetKind() == "SinkBinding" && binding.textAt("spec", "subject", "kind") == o.GetKind() && binding.textAt("spec", "subject", "name") == o.GetName() {
			env["K_SINK"] = "http://" + binding.textAt("spec", "sink", "ref", "name") + "." + o.GetNamespace() + ".svc.cluster.local"
		}
	}
	return env
}

// secretsDir is where every function looks for its secrets.
const secretsDir = "/var/openfaas/secrets"

// secretsOf returns the secrets that are files in the container. Each Secret
// holds one value under its own name, as OpenFaaS makes them.
func (c *check) secretsOf(o Object, pod *corev1.PodTemplateSpec, container *corev1.Container) []string {
	mounted := slices.IndexFunc(container.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == secretsDir })
	if mounted < 0 {
		c.found(o, "no secrets at %s", secretsDir)
		return nil
	}
	var names []string
	for _, volume := range pod.Spec.Volumes {
		if volume.Name != container.VolumeMounts[mounted].Name || volume.Projected == nil {
			continue
		}
		for _, source := range volume.Projected.Sources {
			if source.Secret != nil {
				names = append(names, source.Secret.Name)
			}
		}
	}
	return names
}
