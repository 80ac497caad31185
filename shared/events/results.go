package events

import (
	"fmt"

	"github.com/go-json-experiment/json"

	"seckill/shared/seckill"
)

// results is the answer to a batch.
type results struct {
	Results []seckill.EventResult `json:"results"`
}

// AppendResults appends the answer to a batch: one result for each event, in
// the order of the events.
func AppendResults(dst []byte, all []seckill.EventResult) []byte {
	dst = append(dst, `{"results":[`...)
	for i, r := range all {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendField(dst, `{"id":`, r.ID)
		dst = appendField(dst, `,"verdict":`, string(r.Verdict))
		if r.Reason != "" {
			dst = appendField(dst, `,"reason":`, r.Reason)
		}
		dst = append(dst, '}')
	}
	return append(dst, "]}\n"...)
}

// ReadResults reads the answer to a batch of that many events.
func ReadResults(body []byte, events int) ([]seckill.EventResult, error) {
	said := results{Results: make([]seckill.EventResult, 0, events)}
	if err := json.Unmarshal(body, &said); err != nil {
		return nil, fmt.Errorf("the answer is not understood: %w: %.200s", err, body)
	}
	if len(said.Results) != events {
		return nil, fmt.Errorf("the answer has %d results for %d events", len(said.Results), events)
	}
	return said.Results, nil
}
