-- load.lua writes a chunk of a sale's orders into Redis while it is being built.
-- KEYS: 1-5 as in sale.lua.
-- ARGV: 1 epoch; then for each order: claim, buyer, units, "ordered" | "rejected" |
--   "released", extra as in settle.lua.
-- Reply: "loaded" | "superseded" (another build is at work, or this one ended).
local cur = redis.call('HMGET', KEYS[1], 'epoch', 'fence', 'held', 'closes_ms')
if cur[1] ~= ARGV[1] or cur[2] ~= 'rebuild' then return 'superseded' end
local held = tonumber(cur[3])
for a = 2, #ARGV, 5 do
  local claim, buyer, units, status, extra = unpack(ARGV, a, a + 4)
  if redis.call('HSETNX', KEYS[4], claim, status .. '|' .. buyer .. '|' .. units .. '|' .. extra) == 1 and status == 'ordered' then
    redis.call('HSET', KEYS[3], buyer, add_held(redis.call('HGET', KEYS[3], buyer), claim, units))
    held = held + tonumber(units)
  end
end
-- The time of the last chunk tells a build at work from one that died.
redis.call('HSET', KEYS[1], 'held', string.format('%.0f', held), 'fence_ms', string.format('%.0f', now_ms()))
keep({closes_ms = tonumber(cur[4])})
return 'loaded'
