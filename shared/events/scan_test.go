package events_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"seckill/shared/events"
)

// What the fast way reads, the general way reads alike: a space that is added
// leaves the event the same and the fast way out.
func FuzzScanReadsAsTheGeneralWay(f *testing.F) {
	ours := string(events.AppendClaim(nil, claim(), ""))
	traced := string(events.AppendClaim(nil, claim(), "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"))
	for _, element := range []string{ours, traced, ours + "," + ours, ours + ",", ours + "]", "[" + ours} {
		f.Add(element)
	}
	for _, change := range [][2]string{
		{`"quantity":1`, `"quantity":01`},
		{`"quantity":1`, `"quantity":-1`},
		{`"quantity":1`, `"quantity":1.0`},
		{`"quantity":1`, `"quantity":1e3`},
		{`"quantity":1`, `"quantity":9223372036854775808`},
		{`"quantity":1`, `"quantity":1,"quantity":2`},
		{`Z"`, `+00:00"`},
		{`T`, `t`},
		{`Z"`, `,5Z"`},
		{`.accepted"`, `\u002eaccepted"`},
		{`"buyer":"`, `"buyer":"\\"`},
		{`"buyer":"`, "\"buyer\":\"\u00e9"},
		{`"specversion":"1.0"`, `"specversion":"0.3"`},
		{`}}`, `} }`},
	} {
		f.Add(strings.Replace(ours, change[0], change[1], 1))
		f.Add(strings.ReplaceAll(ours, change[0], change[1]))
	}
	f.Fuzz(func(t *testing.T, element string) {
		fast, _, errFast := events.Read(request(t, events.BatchContentType, "["+element+"]"), sizeMax)
		slow, _, errSlow := events.Read(request(t, events.BatchContentType, "[ "+element+"]"), sizeMax)
		if (errFast == nil) != (errSlow == nil) || len(fast) != len(slow) {
			t.Fatalf("%d events (%v), and %d events (%v) with a space", len(fast), errFast, len(slow), errSlow)
		}
		for i := range fast {
			one, errOne := fast[i].Claim()
			other, errOther := slow[i].Claim()
			if (errOne == nil) != (errOther == nil) || errOne == nil && one != other {
				t.Fatalf("claim %+v (%v), and %+v (%v) with a space", one, errOne, other, errOther)
			}
			if a, b := attributesOf(fast[i]), attributesOf(slow[i]); !reflect.DeepEqual(a, b) || !bytes.Equal(fast[i].Data, slow[i].Data) {
				t.Fatalf("event %v with %s, and %v with %s with a space", a, fast[i].Data, b, slow[i].Data)
			}
		}
	})
}

func attributesOf(e events.Event) []any {
	return []any{e.ID, e.Source, e.Type, e.Subject, e.PartitionKey, e.TraceParent, e.DataType, e.Err == nil}
}
