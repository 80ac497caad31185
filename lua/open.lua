-- open.lua begins to build a sale in Redis: it drops what is there and sets the
-- sale's fields behind the fence "rebuild". load.lua and lift.lua follow.
-- KEYS: 1-5 as in sale.lua.
-- ARGV: 1 epoch, 2 closes_ms, then field and value of each other field of the sale.
-- Reply: "begun" | "superseded" (a newer epoch is there, or this one is open already).
if redis.call('TYPE', KEYS[1])['ok'] ~= 'hash' then redis.call('DEL', KEYS[1]) end
local cur = redis.call('HMGET', KEYS[1], 'epoch', 'fence')
local epoch = tonumber(cur[1] or '0')
if epoch > tonumber(ARGV[1]) or (epoch == tonumber(ARGV[1]) and cur[2] ~= 'rebuild') then return 'superseded' end
redis.call('DEL', KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5])
redis.call('HSET', KEYS[1], 'epoch', ARGV[1], 'closes_ms', ARGV[2], 'opened', '0', 'held', '0', 'reserved', '0', 'debt', '0', 'seq', '0', unpack(ARGV, 3))
set_fence({}, 'rebuild')
keep({closes_ms = tonumber(ARGV[2])})
return 'begun'
