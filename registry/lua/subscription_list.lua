-- A piece of other scripts: trim bounds a list of subscriptions. entries are its fields and values,
-- most is the maximum of the channels that are subscribed, and of the other entries. The oldest are
-- removed. A malformed entry is the oldest.
-- returns a function, and at, which returns the time of a value, Unix us
-- cost O(n log n) if there are too many
local function at(value) return tonumber(value:match('^[+=-](%d+)') or 0) end

local function trim(key, entries, most)
  local kinds = { {}, {} }
  for i = 1, #entries, 2 do
    local kind = entries[i+1]:sub(1, 1) == '+' and kinds[1] or kinds[2]
    kind[#kind+1] = { entries[i], at(entries[i+1]) }
  end
  for _, kind in ipairs(kinds) do
    if #kind > most then
      table.sort(kind, function(a, b) return a[2] > b[2] or a[2] == b[2] and a[1] < b[1] end)
      for i = most + 1, #kind do redis.call('HDEL', key, kind[i][1]) end
    end
  end
end

