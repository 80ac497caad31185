package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"seckill/shared/config"
)

// sample is an answer as a function gave it.
type sample struct {
	Status int
	Header http.Header
	Body   string
}

// take asks once and keeps the answer, less what the server itself adds.
func take(ctx context.Context, method, url, token, body string) (sample, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return sample{}, err
	}
	request.Header.Set("Content-Type", "application/json")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return sample{}, err
	}
	defer response.Body.Close() //nolint:errcheck // it was read
	text, err := io.ReadAll(response.Body)
	response.Header.Del("Date")
	return sample{response.StatusCode, response.Header, string(text)}, err
}

// bare prepares a program that gives this answer to everything and does
// nothing else: the ceiling that net/http sets.
func (s *stage) bare(answer sample) (*program, error) {
	text, err := json.Marshal(answer)
	if err != nil {
		return nil, err
	}
	return s.self("/", "bare", string(text))
}

// serveBare is that program. It answers GET / with 200, to be known as ready.
func serveBare(ctx context.Context, args []string) error {
	var answer sample
	if err := json.Unmarshal([]byte(args[0]), &answer); err != nil {
		return err
	}
	body := []byte(answer.Body)
	return listen(ctx, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		for name, values := range answer.Header {
			w.Header()[name] = values
		}
		w.WriteHeader(answer.Status)
		_, _ = w.Write(body)
	}))
}

// listen serves a plain net/http server on PORT until ctx is done.
func listen(ctx context.Context, handler http.Handler) error {
	var env struct {
		Port int `envconfig:"PORT" required:"true"`
	}
	if err := config.Load(&env); err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", env.Port))
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		fmt.Fprintln(os.Stderr, err)
		return err
	}
	return nil
}
