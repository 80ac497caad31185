package redisstore

import (
	"crypto/sha256"
	"encoding/hex"
)

// This file is the only place with key names. All keys of a sale carry it as
// hash tag, so that a script finds them on one node of a Cluster. A sale's id
// and a buyer never contain braces (seckill.ValidSlug, seckill.ValidBuyer).

const prefix = "seckill:{"

// saleKeys returns the keys that sale.lua expects, in its order.
func saleKeys(sale string) []string {
	tag := prefix + sale + "}:"
	return []string{tag + "sale", tag + "stock", tag + "buyers", tag + "claims", tag + "log"}
}

func saleKey(sale string) string   { return prefix + sale + "}:sale" }
func stockKey(sale string) string  { return prefix + sale + "}:stock" }
func claimsKey(sale string) string { return prefix + sale + "}:claims" }
func logKey(sale string) string    { return prefix + sale + "}:log" }

// rateKey marks the time of a buyer's next attempt in a sale.
func rateKey(sale, buyer string) string { return prefix + sale + "}:rate:" + buyer }

// boundKey holds the request that an Idempotency-Key belongs to. The key is
// the buyer's own text, so only its digest becomes part of a name.
func boundKey(buyer, key string) string {
	sum := sha256.Sum256([]byte(buyer + "\x00" + key))
	return prefix + hex.EncodeToString(sum[:16]) + "}:key"
}

func itemKey(sku string) string { return prefix + sku + "}:item" }

// registryKey names every sale that MySQL knows.
const registryKey = prefix + "registry}:sales"

// probeKey is written by Ping.
const probeKey = prefix + "probe}:probe"
