package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// object is a manifest that is made here.
type object map[string]any

// toolMax bounds one run of the operator's tool.
const toolMax = 3 * time.Minute

// tool runs seckillctl once inside the cluster, with a document as its file,
// and returns what it prints.
func (d *deployment) tool(ctx context.Context, document any, args ...string) (string, error) {
	data, err := json.Marshal(document)
	if err != nil {
		return "", fmt.Errorf("seckillctl: %w", err)
	}
	name := fmt.Sprintf("seckillctl-%d", time.Now().UnixNano())
	list := object{"apiVersion": "v1", "kind": "List", "items": []object{
		{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": name, "namespace": namespace}, "data": object{"document.json": string(data)}},
		{"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": name, "namespace": namespace, "labels": object{"app.kubernetes.io/name": "seckillctl"}}, "spec": d.toolPod(name, args)},
	}}
	manifest, err := json.Marshal(list)
	if err != nil {
		return "", fmt.Errorf("seckillctl: %w", err)
	}
	if _, err := kubectl(ctx, manifest, "create", "-f", "-"); err != nil {
		return "", err
	}
	defer func() {
		_, _ = kubectl(context.WithoutCancel(ctx), nil, "delete", "-n", namespace, "--wait=false", "pod/"+name, "configmap/"+name)
	}()
	phase := ""
	err = poll(ctx, toolMax, fmt.Sprintf("seckillctl %v", args), func(ctx context.Context) error {
		var err error
		if phase, err = get(ctx, "pod/"+name, "{.status.phase}"); err == nil && phase != "Succeeded" && phase != "Failed" {
			err = fmt.Errorf("it is %s", phase)
		}
		return err
	})
	if err != nil {
		return "", err
	}
	out, err := kubectl(ctx, nil, "logs", "-n", namespace, name)
	if err == nil && phase == "Failed" {
		err = errors.New("seckillctl failed: " + out)
	}
	return out, err
}

// toolPod is the pod's spec: the image, settings and secrets of the migrate job.
func (d *deployment) toolPod(name string, args []string) object {
	env := make([]object, 0, 2)
	for _, key := range []string{"NATS_URL", "REDIS_ADDRS"} {
		env = append(env, object{"name": key, "valueFrom": object{"configMapKeyRef": object{"name": d.config, "key": key}}})
	}
	sources := make([]object, 0, 3)
	for _, secret := range []string{"mysql-dsn", "redis-password", "nats-creds"} {
		sources = append(sources, object{"secret": object{"name": secret, "optional": secret == "nats-creds"}})
	}
	return object{
		"restartPolicy":                "Never",
		"automountServiceAccountToken": false,
		"securityContext":              object{"runAsNonRoot": true, "runAsUser": 65532, "seccompProfile": object{"type": "RuntimeDefault"}},
		"containers": []object{{
			"name": "seckillctl", "image": d.registry + "/seckillctl:" + d.tag, "args": args, "env": env,
			"securityContext": object{"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": object{"drop": []string{"ALL"}}},
			"volumeMounts": []object{
				{"name": "secrets", "mountPath": "/var/openfaas/secrets", "readOnly": true},
				{"name": "document", "mountPath": "/document", "readOnly": true},
			},
		}},
		"volumes": []object{
			{"name": "secrets", "projected": object{"sources": sources}},
			{"name": "document", "configMap": object{"name": name}},
		},
	}
}
