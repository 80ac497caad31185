package redisstore

import "seckill/lua"

// Mutate replaces the store's scripts by spoiled ones.
func (s *Store) Mutate(spoil func(string) string) {
	s.scripts = newScripts(func(sc lua.Script) string { return spoil(string(sc)) })
}

// ItemKey names an item's cached document.
func ItemKey(sku string) string { return itemKey(sku) }
