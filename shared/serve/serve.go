// Package serve runs one function's HTTP server: it listens, says whether the
// function lives and is ready, sheds what is too much, and drains before it
// stops.
package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"
)

const (
	readHeaderTimeout = 5 * time.Second
	idleTimeout       = 2 * time.Minute
	headerMax         = 16 << 10 // bytes
)

// SetLog makes slog's default write JSON lines of the level and above to the
// standard error.
func SetLog(level slog.Level) {
	slog.SetDefault(slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: level})))
}

// Run serves handler on cfg.Port until ctx is done, which is the signal to
// stop. Then /_/health and /_/ready answer 503; requests are still taken for
// cfg.DrainDelay; those in flight get cfg.ShutdownTimeout to end, and Run
// returns: nil, or an error if it could not listen or some did not end.
func Run(ctx context.Context, cfg Config, handler http.Handler, checks ...Check) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	tuneMemory()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", ":"+strconv.Itoa(cfg.Port))
	if err != nil {
		return fmt.Errorf("listen on port %d: %w", cfg.Port, err)
	}
	return run(ctx, listener, cfg, handler, checks)
}

func run(ctx context.Context, listener net.Listener, cfg Config, handler http.Handler, checks []Check) error {
	front := newFront(cfg, handler, checks)
	srv := &http.Server{
		Handler:           front,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       cfg.ReadTimeout,
		WriteTimeout:      cfg.WriteTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    headerMax,
		ErrorLog:          slog.NewLogLogger(slog.Default().Handler(), slog.LevelWarn),
	}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(listener) }()
	slog.InfoContext(ctx, "serving", "addr", listener.Addr().String())
	select {
	case err := <-ended:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	return drain(context.WithoutCancel(ctx), srv, front, cfg)
}

// drain ends srv in good order.
func drain(ctx context.Context, srv *http.Server, front *front, cfg Config) error {
	slog.InfoContext(ctx, "draining", "in_flight", front.inFlight.Load())
	close(front.draining)
	srv.SetKeepAlivesEnabled(false) // connections that live on find another replica
	select {
	case <-time.NewTimer(cfg.DrainDelay).C:
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(ctx, cfg.ShutdownTimeout)
	defer cancel()
	if err := srv.Shutdown(ctx); err != nil {
		left := front.inFlight.Load()
		return errors.Join(fmt.Errorf("drain: %d requests did not end within %s: %w", left, cfg.ShutdownTimeout, err), srv.Close())
	}
	slog.InfoContext(ctx, "drained")
	return nil
}
