#!lua flags=allow-oom
-- Writes changes of the members that servers have in channels, in a full Redis too: there are no more of them than
-- connections.
-- Of each channel:
-- KEYS[k+1] ch_p_{channel}:<server>
-- KEYS[k+2] ch_pw_{channel}
-- ARGV[a+1] who joins: client, generation and description of each, a newline behind every one
-- ARGV[a+2] who leaves: client and generation of each, likewise
-- returns for each, with newlines between: version before, version now, since when each of those who join is there (Unix ms,
--         0 for one that did not count), the servers that watch; a version is '0' of nobody; or its error
-- cost O(members changed + watching servers)
local call, format, max = redis.call, string.format, math.max
local now = call('TIME')
local ms = now[1] * 1000 + math.floor(now[2] / 1000)
local since = format('%d', ms)

local function change(k, a)
	local roster, names, generations, texts = KEYS[k+1], {' version'}, {}, {}
	local function note(client, generation, text)
		names[#names + 1] = client
		generations[#names], texts[#names] = tonumber(generation), text
	end
	for client, generation, text in ARGV[a+1]:gmatch('([^\n]*)\n([^\n]*)\n([^\n]*)\n') do
		note(client, generation, text)
	end
	for client, generation in ARGV[a+2]:gmatch('([^\n]*)\n([^\n]*)\n') do
		note(client, generation)
	end
	local held = call('HMGET', roster, unpack(names))
	local version = held[1] or '0'
	local following = format('%d', max((ms - 1577836800000) * 4096, tonumber(version) + 1))
	local here, gone, answer = {' version', following}, {}, {version, following}
	for i = 2, #names do
		local from, youngest = (held[i] or ''):match('^(%d+):(%d+):')
		if tonumber(youngest or 0) > generations[i] then
			-- A younger connection of the client is there.
			answer[#answer + 1] = texts[i] and '0'
		elseif texts[i] then
			answer[#answer + 1] = from or since
			here[#here + 1], here[#here + 2] = names[i], format('%s:%.0f:%s', from or since, generations[i], texts[i])
		elseif held[i] then
			gone[#gone + 1] = names[i]
		end
	end
	if #gone > 0 then
		call('HDEL', roster, unpack(gone))
	end
	local watchers = call('SMEMBERS', KEYS[k+2])
	-- Nobody but the version is left, or nobody was ever here.
	if #here == 2 and call('HLEN', roster) == (held[1] and 1 or 0) then
		call('DEL', roster)
		answer[2] = '0'
	else
		call('HSET', roster, unpack(here))
	end
	for _, server in ipairs(watchers) do
		answer[#answer + 1] = server
	end
	return table.concat(answer, '\n')
end

-- What is wrong with one channel is that one's own.
local replies = {}
for i = 1, #KEYS / 2 do
	local done, reply = pcall(change, 2 * i - 2, 2 * i - 2)
	replies[i] = (done or type(reply) == 'table') and reply or redis.error_reply('ERR ' .. reply)
end
return replies
