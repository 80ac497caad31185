package main

import "testing"

const (
	knative  = "k8s/overlays/knative/"
	seckill  = knative + "functions/seckill-http.yaml"
	consumer = knative + "functions/order-consumer.yaml"
	bridge   = knative + "bridge/nats-bridge.yaml"
	routes   = knative + "routes/routes.yaml"
	// unrested is an overlay whose cron does not rest.
	unrested = "k8s/overlays/knative-channel"
)

func TestMistakesInKnativeServices(t *testing.T) {
	t.Parallel()
	notice(t, []mistake{
		{"unknown field", seckill, "containerConcurrency: 0", "containerConcurency: 0", `unknown field "containerConcurency"`, ""},
		{"PORT is Knative's", seckill, "- name: DRAIN_DELAY", "- name: PORT", `"PORT" is a reserved environment variable`, ""},
		{"autoscaling on the Service", seckill, "  namespace: seckill\n  labels:", "  namespace: seckill\n  annotations:\n    autoscaling.knative.dev/max-scale: \"9\"\n  labels:", "autoscaling.knative.dev/max-scale", ""},
		{"window too short", seckill, `window: "30s"`, `window: "5s"`, "autoscaling.knative.dev/window", ""},
		{"min above activation", seckill, `min-scale: "0"`, `min-scale: "10"`, "is greater than", ""},
		{"timeout above the limit", seckill, "timeoutSeconds: 60", "timeoutSeconds: 900", "expected 0 <= 900 <= 600", ""},
		{"timeout below the drain", seckill, "timeoutSeconds: 60", "timeoutSeconds: 10", "killed before they drain", ""},
		{"reserved port", seckill, "containerPort: 8080", "containerPort: 8012", "containerPort", ""},
		{"another port", seckill, "containerPort: 8080", "containerPort: 8081", "the port is not 8080", ""},
		{"never asleep", consumer, `min-scale: "0"`, `min-scale: "1"`, "it would never sleep", ""},
		{"internal made public", consumer, "    networking.knative.dev/visibility: cluster-local\n", "", "visibility", ""},
		{"public made internal", seckill, "    app.kubernetes.io/part-of: seckill\nspec:", "    networking.knative.dev/visibility: cluster-local\nspec:", "visibility", ""},
		{"slow readiness", seckill, "path: /_/ready", "path: /_/ready\n            periodSeconds: 5", "cold starts take longer", ""},
		{"readiness that touches nothing", seckill, "/_/ready", "/_/health", "readinessProbe does not get /_/ready", ""},
		{"liveness that depends on Redis", seckill, "/_/health", "/_/ready", "livenessProbe does not get /_/health", ""},
		{"image of another function", seckill, "example/seckill-http:", "example/item-detail:", "is of another function", ""},
		{"image of nothing", seckill, "example/seckill-http:", "example/seckil-http:", "is of no program", ""},
	})
}

func TestMistakesInSettings(t *testing.T) {
	t.Parallel()
	notice(t, []mistake{
		{"unknown variable", seckill, "- name: DRAIN_DELAY", "- name: DRAIN_DELAYS", "DRAIN_DELAYS is no variable of seckill-http", ""},
		{"variable of another function", seckill, "- name: DRAIN_DELAY\n              value: 0s", "- name: SWEEP_BATCH\n              value: \"9\"", "SWEEP_BATCH is no variable of seckill-http", ""},
		{"required variable missing", seckill, "- name: REDIS_ADDRS", "- name: REDIS_MASTER", "REDIS_ADDRS", ""},
		{"duration without unit", seckill, "value: 0s", `value: "5"`, "DRAIN_DELAY", ""},
		{"no such key", seckill, "key: NATS_URL", "key: NATS_ADDR", "no key NATS_ADDR in ConfigMap", ""},
		{"bad level for all", "k8s/base/kustomization.yaml", "LOG_LEVEL=info", "LOG_LEVEL=loud", "LOG_LEVEL", ""},
		{"secret missing", consumer, "              - secret:\n                  name: mysql-dsn\n", "", "MYSQL_DSN", ""},
		{"secret misspelt", consumer, "name: mysql-dsn", "name: mysql-url", "mysql-url is no secret of order-consumer", ""},
		{"secret elsewhere", consumer, "/var/openfaas/secrets", "/var/secrets", "no secrets at /var/openfaas/secrets", ""},
		{"bridge without target", bridge, "    name: nats-bridge\n    namespace: seckill\n  sink:", "    name: nats-bridges\n    namespace: seckill\n  sink:", "TARGET_URL", ""},
		{"migrate with a variable of none", "k8s/base/migrate.yaml", "- name: NATS_URL", "- name: NATS_URLS", "NATS_URLS is no variable of seckillctl", ""},
	})
}

func TestMistakesInPods(t *testing.T) {
	t.Parallel()
	notice(t, []mistake{
		{"root file system", seckill, "readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false", "readOnlyRootFilesystem", ""},
		{"root user", seckill, "runAsNonRoot: true", "runAsNonRoot: false", "runAsNonRoot", ""},
		{"escalation", bridge, "allowPrivilegeEscalation: false", "allowPrivilegeEscalation: true", "allowPrivilegeEscalation", ""},
		{"capabilities", bridge, "drop: [ALL]", "drop: [NET_RAW]", "capabilities", ""},
		{"seccomp", seckill, "            seccompProfile:\n              type: RuntimeDefault\n", "", "seccompProfile", ""},
		{"token", bridge, "automountServiceAccountToken: false", "automountServiceAccountToken: true", "automountServiceAccountToken", ""},
		{"no limit", seckill, "              memory: 256Mi\n", "", "memory is not requested and limited", ""},
		{"field of no Deployment", bridge, "replicas: 2", "replica: 2", `unknown field "spec.replica"`, ""},
		{"quantity", bridge, "memory: 128Mi", "memory: 128Mb", "quantities must match", ""},
		{"unversioned image", "k8s/components/backing/redis.yaml", "redis:7.4", "redis", "has no version", ""},
		{"label that policies miss", bridge, "      labels:\n        app.kubernetes.io/part-of: seckill\n        app.kubernetes.io/name: nats-bridge", "      labels:\n        app.kubernetes.io/part-of: seckill\n        app.kubernetes.io/name: bridge", "label app.kubernetes.io/name", ""},
	})
}

func TestMistakesInEvents(t *testing.T) {
	t.Parallel()
	notice(t, []mistake{
		{"every on Knative", knative + "functions/cron.yaml", `"*/10 * * * * *"`, `"@every 10s"`, "a PingSource has no @every", unrested},
		{"seven fields", knative + "functions/cron.yaml", `"*/10 * * * * *"`, `"*/10 * * * * * *"`, "schedule", unrested},
		{"every while resting", "k8s/components/rest/cron.yaml", `"0 0 * * * *"`, `"@every 1h"`, "a PingSource has no @every", ""},
		{"seconds in a CronJob", "k8s/prewarm/knative/cronjobs.yaml", `"0 0 1 1 *"`, `"0 0 0 1 1 *"`, "schedule", ""},
		{"cron to another function", knative + "functions/cron.yaml", "name: expiry-cron\n      namespace", "name: order-http\n      namespace", "does not go to expiry-cron", ""},
		{"sink that is not there", bridge, "name: order-consumer", "name: order-consumers", "there is no Service order-consumers", ""},
		{"field of no PingSource", knative + "functions/cron.yaml", "  schedule:", "  schedules:", "schedules", ""},
		{"delivery without timeout", "k8s/overlays/knative-channel/channel.yaml", "    timeout: PT30S\n", "", "delivery has no timeout", ""},
		{"delivery that tries once", "k8s/overlays/knative-channel/channel.yaml", "retry: 1000", "retry: many", "spec.delivery.retry", ""},
		{"scaler of nothing", "k8s/components/keda/scaledobject.yaml", "    name: nats-bridge\n  min", "    name: bridge\n  min", "there is no Deployment bridge", ""},
		{"scaler without triggers", "k8s/components/keda/scaledobject.yaml", "  triggers:", "  trigger:", "triggers", ""},
	})
}

func TestMistakesInNetwork(t *testing.T) {
	t.Parallel()
	notice(t, []mistake{
		{"claims reach MySQL", knative + "functions/network.yaml", "expiry-cron, item-detail]", "expiry-cron, item-detail, seckill-http]", "seckill-http reaches mysql: true, must be false", ""},
		{"consumer cut off", knative + "functions/network.yaml", "values: [order-consumer, order-http,", "values: [order-http,", "order-consumer reaches mysql: false, must be true", ""},
		{"OpenFaaS: claims reach MySQL", "k8s/overlays/openfaas/network.yaml", "expiry-cron, item-detail]\n  policyTypes: [Egress]", "expiry-cron, item-detail, seckill-http]\n  policyTypes: [Egress]", "seckill-http reaches mysql: true, must be false", ""},
		{"managed: claims reach MySQL", "k8s/components/managed/network.yaml", "values: [order-consumer,", "values: [seckill-http, order-consumer,", "seckill-http reaches mysql: true, must be false", ""},
		{"protocol", "k8s/base/network.yaml", "policyTypes: [Ingress, Egress]", "policyType: [Ingress, Egress]", "policyType", ""},
		{"path of another function", routes, "            value: /items", "            value: /orders", `/orders goes to "item-detail"`, ""},
		{"internal function on a route", routes, "hostname: item-detail.", "hostname: expiry-cron.", "expiry-cron is open to the outside", ""},
		{"no time limit", routes, "      timeouts:\n        request: 15s\n", "", "timeouts.request", ""},
		{"bad duration", routes, "request: 40s", "request: forty", "request", ""},
		{"retries", routes, "      timeouts:", "      retry:\n        attempts: 2\n      timeouts:", "retr", ""},
		{"no grant", knative + "routes/grant.yaml", "name: kourier-internal", "name: kourier", "no ReferenceGrant", ""},
		{"limit on nothing", "k8s/components/rate-limit/policy.yaml", "      name: claims", "      name: claim", "there is no HTTPRoute claim", ""},
		{"component that is not there", knative + "kustomization.yaml", "components/rest", "components/rests", "kustomize build", ""},
	})
}

func TestMistakesInPrewarm(t *testing.T) {
	t.Parallel()
	const jobs = "k8s/prewarm/knative/cronjobs.yaml"
	notice(t, []mistake{
		{"runs by itself", jobs, "suspend: true", "suspend: false", "must be suspended", ""},
		{"another function", jobs, "service=seckill-http,", "service=seckill,", "does not select the active revision", ""},
		{"min alone", jobs, "activation-scale=$(MIN)", "activation-scale=3", "must be one number", ""},
		{"cools to another value", jobs, "activation-scale=3", "activation-scale=4", `its manifest says "3"`, ""},
		{"right of no kind", "k8s/prewarm/knative/access.yaml", "  - apiGroups:", "  - apiGroup:", "apiGroup", ""},
	}, (*check).checkPrewarm)
}
