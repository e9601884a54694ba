#!lua flags=no-writes
-- Reads a page of the state of each of many channels, or some fields of it. Fields that are due are
-- skipped.
-- For each channel:
-- KEYS[k+1] mq_ch_{channel}
-- KEYS[k+2] mq_m_{channel}
-- KEYS[k+3] st_{channel}
-- KEYS[k+4] st_n_{channel}
-- ARGV[2+i] MessagePack: {from, to, most fields, most bytes, brief 0 or 1, fields}: bounds of
--           ZRANGEBYLEX, and limits of which 0 means none; or the fields to read instead. A brief
--           record has no id, grace, holder, parent and owners
-- For all:
-- ARGV[1] most bytes of all pages; after pages with this sum, no further channel is read
-- ARGV[2] minimum that the clock must show, Unix ms
-- returns for each channel {header, field, record, ...}; '' if it was not read, see ARGV[1]; or an
--         error. The header has, separated by newlines: last id of the channel, the clock (Unix
--         ms), when the next field ends, or the whole state, or 0, when the whole state ends, -1
--         for never, 0 without fields, more 0 or 1
-- cost O(log n + fields) for each channel

local max_total, total = tonumber(ARGV[1]), 0
local now = call('TIME')
local ms = math.max(now[1] * 1000 + math.floor(now[2] / 1000), tonumber(ARGV[2]))

-- Returns the length of the value, or nil for a field that is due.
local function live_size(record)
	local lease, away, head = string.match(record, '^%d+ (%d+) (%-?%d+)[^\n]*()')
	if not lease then
		error('malformed field', 0)
	end
	lease, away = tonumber(lease), tonumber(away)
	if (lease == 0 or lease > ms) and (away <= 0 or away > ms) then
		return #record - head
	end
end

local function read(k, i)
	local from, to, limit, max_bytes, brief, wanted = unpack(cmsgpack.unpack(ARGV[2+i]))
	local meta = call('HMGET', KEYS[k+2], 'last', 'st_keep', 'st_due', 'st_bytes')
	local keep, reply, size, more = tonumber(meta[2]), {''}, 0, 0
	local done = not keep or keep > 0 and ms >= keep
	local chunk = limit > 0 and math.min(limit + 1, 64) or 64
	while not done do
		local names = #wanted > 0 and wanted or call('ZRANGEBYLEX', KEYS[k+4], from, to, 'LIMIT', '0', chunk)
		local records = #names > 0 and call('HMGET', KEYS[k+3], unpack(names)) or names
		done = #wanted > 0 or #names < chunk
		for n, record in ipairs(records) do
			local bytes = record and live_size(record)
			if bytes then
				size = size + #names[n] + bytes
				if #wanted == 0 and #reply > 1 and (limit > 0 and #reply > 2 * limit
					or max_bytes > 0 and size > max_bytes) then
					done, more = true, 1
					break
				end
				reply[#reply + 1] = names[n]
				reply[#reply + 1] = brief == 0 and record or (string.gsub(record, '^%d+ (%d+ %-?%d+)[^\n]*', '0 %1 0  ~', 1))
			end
		end
		from, chunk = '(' .. (names[#names] or ''), 64
	end
	total = total + size
	local due, keep_until = tonumber(meta[3] or 0), meta[4] ~= '0' and keep or 0
	if keep_until > 0 and (due == 0 or keep_until < due) then
		due = keep_until
	end
	reply[1] = format('%s\n%d\n%d\n%d\n%d', last_id(KEYS[k+1], meta[1]), ms, due, keep_until, more)
	return reply
end

-- An error of one channel does not affect the others.
local replies = {}
for i = 1, #ARGV - 2 do
	local ok, reply = true, ''
	if total < max_total then
		ok, reply = pcall(read, 4 * i - 4, i)
	end
	replies[i] = (ok or type(reply) == 'table') and reply or redis.error_reply('ERR ' .. reply)
end
return replies
