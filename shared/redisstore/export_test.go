package redisstore

import "seckill/lua"

// BoundKey is the name of the key that an Idempotency-Key is bound by.
func BoundKey(buyer, key string) string { return boundKey(buyer, key) }

// Mutate replaces the store's scripts by spoiled ones.
func (s *Store) Mutate(spoil func(string) string) {
	s.scripts = newScripts(func(sc lua.Script) string { return spoil(string(sc)) })
}

// ItemKey names an item's cached document.
func ItemKey(sku string) string { return itemKey(sku) }
