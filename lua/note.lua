-- note.lua notes, behind the fence, how far the claims in flight of a sale reach
-- in the stream of claims.
-- KEYS: 1-5 as in sale.lua. ARGV: 1 the epoch, 2 last sequence of the stream of claims.
-- Reply: "noted" | "same" (the first note stays) | "superseded" (another epoch is
--   there, or the sale is not being drained any more).
local cur = redis.call('HMGET', KEYS[1], 'epoch', 'fence', 'fence_seq')
if cur[1] ~= ARGV[1] or cur[2] ~= 'drain' then return 'superseded' end
if cur[3] then return 'same' end
set_fence({}, 'drain')
redis.call('HSET', KEYS[1], 'fence_seq', ARGV[2])
return 'noted'
