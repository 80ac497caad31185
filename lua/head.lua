-- head.lua reads a sale as a whole, at one instant.
-- KEYS: 1-5 as in sale.lua. ARGV: none.
-- Reply: {} if Redis does not hold the sale, else {now_ms, stock ("" if it is not
--   a number), "sound" | "unsound", then every field of the sale and its value}.
local s = read_sale()
if not s then return {} end
local reply = {string.format('%.0f', now_ms()), s.stock and string.format('%.0f', s.stock) or '', s.sound and 'sound' or 'unsound'}
for _, v in ipairs(redis.call('HGETALL', KEYS[1])) do reply[#reply + 1] = v end
return reply
