package mysqlstore

import (
	"errors"
	"strings"
	"testing"

	"seckill/shared/seckill"
	"seckill/shared/testenv"
)

func TestItemRoundTripIsExact(t *testing.T) {
	t.Parallel()
	onEach(t, func(e env) {
		want := seckill.Item{
			SKU: testenv.Name(e), Name: "限量🧨酒 𠮷🐱 'o\\\"", Description: strings.Repeat("é", 30_000),
			ImageURL: "https://img.example/x?y=%27",
		}
		put, err := e.PutItem(e.Context(), want)
		if err != nil {
			e.Fatal(err)
		}
		got, err := e.Item(e.Context(), want.SKU)
		if err != nil || got != put {
			e.Errorf("put %+v, got %+v, %v", put, got, err)
		}
		want.Version, want.UpdatedAt = 1, got.UpdatedAt
		if got != want {
			e.Errorf("stored %+v", got)
		}
	})
}

func TestItemVersionGrowsWithChangesOnly(t *testing.T) {
	t.Parallel()
	onEach(t, func(e env) {
		item := seckill.Item{SKU: testenv.Name(e), Name: "a"}
		for _, step := range []struct {
			name    string
			version int64
		}{{"a", 1}, {"a", 1}, {"A", 2}, {"a", 3}} {
			item.Name = step.name
			put, err := e.PutItem(e.Context(), item)
			if err != nil || put.Version != step.version || put.Name != step.name {
				e.Errorf("%s: got %+v, %v, want version %d", step.name, put, err, step.version)
			}
		}
	})
}

func TestItemsAtOnceLoseNoVersion(t *testing.T) {
	t.Parallel()
	onEach(t, func(e env) {
		sku := testenv.Name(e)
		n := min(e.racers, 30)
		together(n, func(i int) {
			if _, err := e.PutItem(e.Context(), seckill.Item{SKU: sku, Name: strings.Repeat("x", i+1)}); err != nil {
				e.Error(err)
			}
		})
		if got, err := e.Item(e.Context(), sku); err != nil || got.Version != int64(n) {
			e.Errorf("%+v, %v after %d changes", got, err, n)
		}
	})
}

func TestItemsOfAnotherCaseAreOthers(t *testing.T) {
	t.Parallel()
	onEach(t, func(e env) {
		sku := testenv.Name(e)
		if _, err := e.PutItem(e.Context(), seckill.Item{SKU: sku, Name: "a"}); err != nil {
			e.Fatal(err)
		}
		for _, other := range []string{strings.ToUpper(sku), "🧨", "", sku + "x"} {
			if _, err := e.Item(e.Context(), other); !errors.Is(err, seckill.ErrNotFound) {
				e.Errorf("item %q: %v", other, err)
			}
		}
	})
}

func TestItemsAreListedBySKU(t *testing.T) {
	t.Parallel()
	onEach(t, func(e env) {
		for _, sku := range []string{"c", "a", "b"} {
			if _, err := e.PutItem(e.Context(), seckill.Item{SKU: sku, Name: "x"}); err != nil {
				e.Fatal(err)
			}
		}
		items, err := e.Items(e.Context(), 2)
		if err != nil || len(items) != 2 || items[0].SKU != "a" || items[1].SKU != "b" {
			e.Errorf("items %+v, %v", items, err)
		}
	})
}

func TestUnacceptableItemIsNamed(t *testing.T) {
	t.Parallel()
	s := openStore(t, Config{DSN: "nobody@tcp(127.0.0.1:1)/nowhere", ConnsMax: 1})
	_, err := s.PutItem(t.Context(), seckill.Item{SKU: "Bad SKU", Name: "x"})
	var field *seckill.FieldError
	if !errors.As(err, &field) || field.Field != "sku" {
		t.Errorf("got %v", err)
	}
}
