-- restock.lua gives the units of a batch of claims of one sale back, each
-- exactly once.
-- KEYS: 1-5 as in sale.lua.
-- ARGV: for each claim: id, buyer, units.
-- Reply: for each claim "done" (its units are in stock again) | "same" (they were
--   before) | "adopted" (Redis did not know the claim; stock is untouched, and a
--   settle that comes later finds it released) | "gone" (Redis does not hold the sale; if
--   it is built again, then without these units held) | "fenced" (ask again later).
local s, reply = read_sale(), {}
for i = 1, #ARGV / 3 do
  local a = 3 * (i - 1)
  if not s then
    reply[i] = 'gone'
  elseif s.fence == 'rebuild' then
    reply[i] = 'fenced'
  else
    reply[i] = settle_one(s, ARGV[a + 1], ARGV[a + 2], tonumber(ARGV[a + 3]), 'released', '')
  end
end
if s and s.fence ~= 'rebuild' and s.stock then write_sale(s) end
return reply
