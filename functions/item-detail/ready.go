package itemdetail

import (
	"context"
	"errors"
)

// AnyOf returns a readiness check that passes while one of pings does: with
// Redis or MySQL alone items are still served, if not with all they should
// show, and a replica that is taken out of service serves nothing.
func AnyOf(pings ...func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		results := make(chan error, len(pings))
		for _, ping := range pings {
			go func() { results <- ping(ctx) }()
		}
		var failed []error
		for range pings {
			err := <-results
			if err == nil {
				return nil
			}
			failed = append(failed, err)
		}
		return errors.Join(failed...)
	}
}
