package main

import (
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// reach says which functions may reach what, besides the migrate job; the
// function that takes claims is kept from MySQL.
var reach = map[string][]string{
	"mysql": {"expiry-cron", "item-detail", "order-consumer", "order-http"},
	"redis": {"expiry-cron", "item-detail", "order-consumer", "order-http", "seckill-http"},
	"nats":  {"expiry-cron", "item-detail", "nats-bridge", "seckill-http"},
}

// checkNetwork checks that the policies let through what a function needs, by
// its main's imports, and that MySQL is reached by nobody else.
func (c *check) checkNetwork() {
	var policies []networkingv1.NetworkPolicy
	for _, o := range c.objects {
		if o.GetKind() != "NetworkPolicy" {
			continue
		}
		var p networkingv1.NetworkPolicy
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &p); err == nil {
			policies = append(policies, p)
		}
	}
	if len(policies) == 0 {
		return
	}
	for _, function := range c.tree.functions() {
		for server, functions := range reach {
			want := slices.Contains(functions, function)
			if got := mayReach(policies, function, server); got != want {
				c.report(c.build, "NetworkPolicies: %s reaches %s: %t, must be %t", function, server, got, want)
			}
			if needs := strings.Contains(string(c.tree["functions/"+function+"/cmd/main.go"]), storePackage[server]); needs != want {
				c.report("functions/"+function, "the main connects to %s: %t, the policies say %t", server, needs, want)
			}
		}
	}
}

// storePackage is what a main imports to connect to a server.
var storePackage = map[string]string{"mysql": "shared/mysqlstore", "redis": "shared/redisstore", "nats": "shared/natsqueue"}

// mayReach reports whether a policy lets a function out to a server, in the
// cluster or outside, by the labels its pods have on either platform.
func mayReach(policies []networkingv1.NetworkPolicy, function, server string) bool {
	pod := labels.Set{"app.kubernetes.io/name": function, "faas_function": function, "serving.knative.dev/service": function}
	if function == "nats-bridge" {
		delete(pod, "serving.knative.dev/service")
	}
	target := labels.Set{"app.kubernetes.io/name": server}
	for _, p := range policies {
		if !matches(&p.Spec.PodSelector, pod) {
			continue
		}
		for _, rule := range p.Spec.Egress {
			for _, to := range rule.To {
				if to.PodSelector != nil && matches(to.PodSelector, target) || to.IPBlock != nil && onPort(rule, server) {
					return true
				}
			}
		}
	}
	return false
}

// ports are where the servers listen, in the cluster and outside of it.
var ports = map[string]int32{"mysql": 3306, "redis": 6379, "nats": 4222}

// onPort reports whether a rule lets out to a server's port, wherever it is.
func onPort(rule networkingv1.NetworkPolicyEgressRule, server string) bool {
	return slices.ContainsFunc(rule.Ports, func(p networkingv1.NetworkPolicyPort) bool {
		return p.Port != nil && p.Port.IntVal == ports[server]
	})
}

func matches(selector *metav1.LabelSelector, set labels.Set) bool {
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && s.Matches(set)
}
