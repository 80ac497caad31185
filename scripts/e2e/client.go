package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"seckill/shared/identity"
)

// client sends requests through the cluster's ingress.
type client struct {
	http    *http.Client
	gateway string
	hosts   map[string]string // function, its host
	secret  string            // signs buyers' tokens
}

// answerMax bounds what is read of an answer; requestMax how long one may take.
const (
	answerMax  = 1 << 20
	requestMax = time.Minute
)

func newClient(ctx context.Context, o options) (*client, error) {
	c := &client{
		http: &http.Client{
			Timeout:   requestMax,
			Transport: &http.Transport{MaxIdleConnsPerHost: o.burst, DisableCompression: true},
		},
		gateway: strings.TrimSuffix(o.gateway, "/"), hosts: map[string]string{},
	}
	var err error
	if c.secret, err = secret(ctx, "auth-hmac-secret"); err != nil {
		return nil, err
	}
	for _, function := range functions {
		url, err := get(ctx, "ksvc/"+function, "{.status.url}")
		if err != nil {
			return nil, err
		}
		_, c.hosts[function], _ = strings.Cut(url, "://")
		// What is cluster-local has no route: it is asked by its own host, so
		// that the last step checks more than that the Gateway lacks a path.
		if o.host != "" && !slices.Contains(internal, function) {
			c.hosts[function] = o.host
		}
	}
	if c.gateway == "" {
		address, err := kubectl(ctx, nil, "-n", "kourier-system", "get", "service/kourier", "-o",
			"jsonpath={.status.loadBalancer.ingress[0].ip}{.status.loadBalancer.ingress[0].hostname}")
		if err != nil || address == "" {
			return nil, errors.Join(errors.New("-gateway is not given, and Service kourier has no address"), err)
		}
		c.gateway = "http://" + address
	}
	return c, nil
}

// answer is what came back.
type answer struct {
	status int
	body   []byte
	took   time.Duration
}

// do sends one request ("METHOD PATH") to a function, as a buyer if one is
// named.
func (c *client) do(ctx context.Context, function, call, buyer, body string) (answer, error) {
	method, path, _ := strings.Cut(call, " ")
	request, err := http.NewRequestWithContext(ctx, method, c.gateway+path, bytes.NewBufferString(body))
	if err != nil {
		return answer{}, fmt.Errorf("%s: %w", call, err)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	if buyer != "" {
		token, err := identity.Sign(c.secret, buyer, time.Hour)
		if err != nil {
			return answer{}, fmt.Errorf("%s: %w", call, err)
		}
		request.Header.Set("Authorization", "Bearer "+token)
	}
	return c.send(function, request)
}

// send sends a request that is complete but for the function's host.
func (c *client) send(function string, request *http.Request) (answer, error) {
	request.Host = c.hosts[function]
	start := time.Now()
	response, err := c.http.Do(request)
	if err != nil {
		return answer{}, fmt.Errorf("ask %s: %w", function, err)
	}
	defer response.Body.Close() //nolint:errcheck // it was read as far as it matters
	body, err := io.ReadAll(io.LimitReader(response.Body, answerMax))
	if err != nil {
		return answer{}, fmt.Errorf("ask %s: %w", function, err)
	}
	return answer{status: response.StatusCode, body: body, took: time.Since(start)}, nil
}
