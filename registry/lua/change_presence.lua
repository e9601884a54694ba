#!lua flags=allow-oom
-- Applies changes to rosters. It also runs in a full Redis: there are at most as many members as
-- connections.
-- For each roster:
-- KEYS[k+1] ch_p_{channel}:<server>
-- KEYS[k+2] ch_pw_{channel}
-- ARGV[a+1] joins: client, generation and description of each, a newline after every field
-- ARGV[a+2] leaves: client and generation of each, a newline after every field
-- returns for each roster, separated by newlines: version before, version after, for each join the
--         time of joining (Unix ms, 0 if ignored), the watching servers; or an error. An empty
--         roster has version 0
-- cost O(members changed + watching servers)
local call, format, max = redis.call, string.format, math.max
local now = call('TIME')
local ms = now[1] * 1000 + math.floor(now[2] / 1000)
local now_ms = format('%d', ms)

local function change(k, a)
	local roster, names, generations, descriptions = KEYS[k+1], {' version'}, {}, {}
	local function add(client, generation, description)
		names[#names + 1] = client
		generations[#names], descriptions[#names] = tonumber(generation), description
	end
	for client, generation, description in ARGV[a+1]:gmatch('([^\n]*)\n([^\n]*)\n([^\n]*)\n') do
		add(client, generation, description)
	end
	for client, generation in ARGV[a+2]:gmatch('([^\n]*)\n([^\n]*)\n') do
		add(client, generation)
	end
	local fields = call('HMGET', roster, unpack(names))
	local version = fields[1] or '0'
	-- The version includes the microseconds, so that a roster that is emptied and filled within a
	-- millisecond gets a new one. It is a number below 2^53 until 2089.
	local clock = (ms - 1577836800000) * 4096 + now[2] % 1000 * 4
	local next_version = format('%d', max(clock, tonumber(version) + 1))
	local written, removed, reply = {' version', next_version}, {}, {version, next_version}
	for i = 2, #names do
		local since, current = (fields[i] or ''):match('^(%d+):(%d+):')
		if tonumber(current or 0) > generations[i] then
			-- A newer connection of the client is a member.
			reply[#reply + 1] = descriptions[i] and '0'
		elseif descriptions[i] then
			reply[#reply + 1] = since or now_ms
			written[#written + 1] = names[i]
			written[#written + 1] = format('%s:%.0f:%s', since or now_ms, generations[i], descriptions[i])
		elseif fields[i] then
			removed[#removed + 1] = names[i]
		end
	end
	if #removed > 0 then
		call('HDEL', roster, unpack(removed))
	end
	local watchers = call('SMEMBERS', KEYS[k+2])
	-- Only the version is left, or the roster was empty before.
	if #written == 2 and call('HLEN', roster) == (fields[1] and 1 or 0) then
		call('DEL', roster)
		reply[2] = '0'
	else
		call('HSET', roster, unpack(written))
	end
	for _, server in ipairs(watchers) do
		reply[#reply + 1] = server
	end
	return table.concat(reply, '\n')
end

-- An error in one roster does not affect the others.
local replies = {}
for i = 1, #KEYS / 2 do
	local ok, reply = pcall(change, 2 * i - 2, 2 * i - 2)
	replies[i] = (ok or type(reply) == 'table') and reply or redis.error_reply('ERR ' .. reply)
end
return replies
