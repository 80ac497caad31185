-- cacheitem.lua keeps an item's document unless a newer version is there.
-- KEYS: 1 the item. ARGV: 1 version, 2 document, 3 how long to keep it in ms.
-- The ttl is kept, so that what is left of it tells the document's age.
-- Reply: "kept" | "older" (a newer version stays).
local kind = redis.call('TYPE', KEYS[1])
if kind['ok'] == 'hash' then
  local version = tonumber(redis.call('HGET', KEYS[1], 'version') or '0')
  if version and version > tonumber(ARGV[1]) and redis.call('PTTL', KEYS[1]) > 0 then return 'older' end
else
  redis.call('DEL', KEYS[1])
end
redis.call('HSET', KEYS[1], 'version', ARGV[1], 'document', ARGV[2], 'ttl', ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 'kept'
