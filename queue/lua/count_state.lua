#!lua flags=no-writes
-- Counts the fields of groups in the state of each of many channels, and reads some fields. It
-- counts by the index of names and by that of parts, so that its cost does not depend on the size
-- of the state. Fields that are due are neither counted nor read.
-- For each channel:
-- KEYS[k+1] mq_ch_{channel}
-- KEYS[k+2] mq_m_{channel}
-- KEYS[k+3] st_{channel}
-- KEYS[k+4] st_n_{channel}
-- KEYS[k+5] st_x_{channel}
-- KEYS[k+6] st_p_{channel}
-- ARGV[1+i] MessagePack: {fields, groups}, a group is {prefix, 1 if it is that of the parents}
-- For all:
-- ARGV[1] minimum that the clock must show, Unix ms
-- returns for each channel {header, field, record, ...}; or an error. The header has, separated by
--         newlines: last id of the channel, the clock (Unix ms), when the next field ends, or the
--         whole state, or 0, when the whole state ends, -1 for never, 0 without fields; when the
--         next field ends that is not due, or 0; the number of fields that are due; the counts
-- cost O(log n) for each group and field, O(fields that are due)

local now = call('TIME')
local ms = math.max(now[1] * 1000 + math.floor(now[2] / 1000), tonumber(ARGV[1]))

local function begins(text, prefix)
	return string.sub(text, 1, #prefix) == prefix
end

-- Returns how many members of an index begin with a prefix, which is not empty.
local function count(key, prefix)
	local last = #prefix
	return call('ZLEXCOUNT', key, '[' .. prefix, '(' .. string.sub(prefix, 1, last - 1) .. string.char(string.byte(prefix, last) + 1))
end

-- Subtracts fields that are due from the counts.
local function without_due(k, due, groups, counts)
	for from = 1, #due, 1000 do
		local to = math.min(from + 999, #due)
		local records = call('HMGET', KEYS[k+3], unpack(due, from, to))
		for i = from, to do
			local parent = string.match(records[i - from + 1] or '', '^%d+ %d+ %-?%d+ %-?%d+ %S* (%S*)')
			for g = 1, #groups do
				if begins(groups[g][2] == 1 and (parent or '') or due[i], groups[g][1]) then
					counts[g] = counts[g] - 1
				end
			end
		end
	end
end

local function read(k, i)
	local wanted, groups = unpack(cmsgpack.unpack(ARGV[1+i]))
	local meta = call('HMGET', KEYS[k+2], 'last', 'st_keep', 'st_due', 'st_bytes')
	local keep, reply, counts, due, ends = tonumber(meta[2]), {''}, {}, {}, 0
	local live = keep and (keep <= 0 or ms < keep)
	for g = 1, #groups do
		counts[g] = live and count(groups[g][2] == 1 and KEYS[k+6] or KEYS[k+4], groups[g][1]) or 0
	end
	if live then
		due = call('ZRANGEBYSCORE', KEYS[k+5], '-inf', format('%d', ms))
		ends = tonumber(call('ZRANGEBYSCORE', KEYS[k+5], '(' .. format('%d', ms), '+inf', 'WITHSCORES', 'LIMIT', '0', '1')[2] or 0)
		without_due(k, due, groups, counts)
		local is_due = {}
		for n = 1, #due do
			is_due[due[n]] = true
		end
		for n, record in ipairs(#wanted > 0 and call('HMGET', KEYS[k+3], unpack(wanted)) or wanted) do
			if record and not is_due[wanted[n]] then
				reply[#reply + 1], reply[#reply + 2] = wanted[n], record
			end
		end
	end
	local next_due, keep_until = tonumber(meta[3] or 0), meta[4] ~= '0' and keep or 0
	if keep_until > 0 and (next_due == 0 or keep_until < next_due) then
		next_due = keep_until
	end
	reply[1] = format('%s\n%d\n%d\n%d\n%d\n%d', last_id(KEYS[k+1], meta[1]), ms, next_due, keep_until, ends, #due)
	for g = 1, #groups do
		reply[1] = reply[1] .. '\n' .. format('%d', counts[g])
	end
	return reply
end

-- An error of one channel does not affect the others.
local replies = {}
for i = 1, #ARGV - 1 do
	local ok, reply = pcall(read, 6 * i - 6, i)
	replies[i] = (ok or type(reply) == 'table') and reply or redis.error_reply('ERR ' .. reply)
end
return replies
