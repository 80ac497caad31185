package campaign

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"seckill/scripts/faults/stage"
)

func killFunction(ctx context.Context, f *fault) (string, error) {
	fn := f.function()
	fn.Crash(300 * time.Millisecond)
	fn.Back()
	return fn.Name, ctx.Err()
}

func pauseFunction(ctx context.Context, f *fault) (string, error) {
	fn := f.function()
	fn.Pause()
	defer fn.Resume()
	f.lasts(ctx, 1500*time.Millisecond)
	return fn.Name, nil
}

// functionsAllAtOnce is a node that dies with everything on it but the stores.
func functionsAllAtOnce(ctx context.Context, f *fault) (string, error) {
	for _, name := range stage.Names() {
		f.stage.Functions[name].Crash(500 * time.Millisecond)
	}
	for _, fn := range f.stage.Functions {
		fn.Back()
	}
	return "", ctx.Err()
}

func mysqlAndConsumerGone(ctx context.Context, f *fault) (string, error) {
	consumer := f.stage.Functions["order-consumer"]
	consumer.Crash(time.Second)
	f.stage.MySQL.Kill()
	f.lasts(ctx, time.Second)
	consumer.Back()
	return "", f.stage.MySQL.Start()
}

// sweepsAtOnce triggers some beside the cron's.
func sweepsAtOnce(ctx context.Context, f *fault) (string, error) {
	var sweeps sync.WaitGroup
	for range 4 {
		sweeps.Go(func() { _ = f.stage.Sweep(ctx) }) // one may fail: another fault may linger
	}
	sweeps.Wait()
	return "", nil
}

// eventsAgain posts what the bridge has posted once more, in another order and
// twice at the same time, straight to the consumer.
func eventsAgain(ctx context.Context, f *fault) (string, error) {
	posts := f.stage.Gateway.Posted()
	f.rng.Shuffle(len(posts), func(i, j int) { posts[i], posts[j] = posts[j], posts[i] })
	var sending sync.WaitGroup
	for range 2 {
		sending.Go(func() {
			for _, post := range posts {
				_ = f.post(ctx, post)
			}
		})
	}
	sending.Wait()
	return fmt.Sprint(len(posts), " posts"), ctx.Err()
}

func (c *campaign) post(ctx context.Context, post stage.Post) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.stage.Functions["order-consumer"].URL+"/", bytes.NewReader(post.Body))
	if err != nil {
		return err
	}
	r.Header = post.Header.Clone()
	response, err := c.shop.client.Do(r)
	if err != nil {
		return err
	}
	return response.Body.Close()
}
