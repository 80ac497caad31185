package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// namespace is where the overlays put everything.
const namespace = "seckill"

// kubectl runs kubectl in the current context and returns what it prints.
func kubectl(ctx context.Context, stdin []byte, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "kubectl", args...)
	cmd.Stdin = bytes.NewReader(stdin)
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		switch {
		case ctx.Err() != nil:
			err = context.Cause(ctx)
		case errors.As(err, &exit):
			err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
		}
		return "", fmt.Errorf("kubectl %s: %w", strings.Join(args, " "), err)
	}
	return string(out), nil
}

// get returns one field of one object, by a JSONPath.
func get(ctx context.Context, object, path string) (string, error) {
	return kubectl(ctx, nil, "-n", namespace, "get", object, "-o", "jsonpath="+path)
}

// secret returns the value that a Secret holds under its own name.
func secret(ctx context.Context, name string) (string, error) {
	encoded, err := get(ctx, "secret/"+name, "{.data."+name+"}")
	if err != nil {
		return "", err
	}
	value, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(value) == 0 {
		return "", fmt.Errorf("secret %s holds no value under its own name", name)
	}
	return strings.TrimRight(string(value), "\r\n"), nil
}

// knows reports whether the cluster has a kind, named like httproutes.gateway.networking.k8s.io.
func knows(ctx context.Context, crd string) bool {
	_, err := kubectl(ctx, nil, "get", "crd", crd, "-o", "name")
	return err == nil
}

// poll asks once a second until step says that it is done, and returns the
// last reason why it was not when ctx or the limit ends.
func poll(ctx context.Context, limit time.Duration, what string, step func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		err := step(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: not within %s: %w", what, limit, err)
		case <-tick.C:
		}
	}
}

// pods returns how many pods of a function there are, ending ones included.
func pods(ctx context.Context, function string) (int, error) {
	out, err := kubectl(ctx, nil, "-n", namespace, "get", "pods", "-l", "serving.knative.dev/service="+function, "-o", "name")
	return strings.Count(out, "\n"), err
}
