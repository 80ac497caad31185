package campaign

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"seckill/shared/natsqueue"
	"seckill/shared/servers"
)

func natsPaused(ctx context.Context, f *fault) (string, error) {
	f.stage.NATS.Pause()
	defer f.stage.NATS.Resume()
	f.lasts(ctx, 1500*time.Millisecond)
	return "", nil
}

func natsKilled(ctx context.Context, f *fault) (string, error) {
	f.stage.NATS.Kill()
	f.lasts(ctx, 700*time.Millisecond)
	return "", f.stage.NATS.Start()
}

// natsStoreDeleted is a broker that comes back on an empty disk.
func natsStoreDeleted(ctx context.Context, f *fault) (string, error) {
	f.stage.NATS.Kill()
	if err := f.stage.NATS.Wipe(); err != nil {
		return "", err
	}
	f.lasts(ctx, 500*time.Millisecond)
	return "", f.stage.NATS.Start()
}

func streamDeleted(ctx context.Context, f *fault) (string, error) {
	if _, err := f.stream(ctx); err != nil {
		return "", err
	}
	return "", f.stage.JS.DeleteStream(ctx, natsqueue.StreamClaims)
}

// stream is the stream of claims, once a function has made it again.
func (f *fault) stream(ctx context.Context) (stream jetstream.Stream, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	err = servers.Poll(ctx, func() (err error) {
		stream, err = f.stage.JS.Stream(ctx, natsqueue.StreamClaims)
		return err
	})
	return stream, err
}

func consumerDeleted(ctx context.Context, f *fault) (string, error) {
	if _, err := f.stream(ctx); err != nil {
		return "", err
	}
	return "", f.stage.JS.DeleteConsumer(ctx, natsqueue.StreamClaims, natsqueue.Consumer)
}

// streamFull sets a limit under which the stream takes nothing more.
func streamFull(ctx context.Context, f *fault) (string, error) {
	stream, err := f.stream(ctx)
	if err != nil {
		return "", err
	}
	config := stream.CachedInfo().Config
	tiny := config
	tiny.MaxMsgs = 1
	if _, err := f.stage.JS.UpdateStream(ctx, tiny); err != nil {
		return "", err
	}
	f.lasts(ctx, 1500*time.Millisecond)
	_, err = f.stage.JS.UpdateStream(ctx, config)
	return "", err
}
