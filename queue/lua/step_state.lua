#!lua
-- Changes the states of channels in ways that no update does: it removes what is due, and records
-- that owners have ended, are back, or have unsubscribed. See owners.go of package state.
-- For each channel:
-- KEYS[k+3] ch_{channel}
-- KEYS[k+4] st_{channel}
-- KEYS[k+5] st_n_{channel}
-- KEYS[k+6] st_x_{channel}
-- KEYS[k+7] st_o_{channel}
-- KEYS[k+8] st_p_{channel}
-- ARGV[7+i] MessagePack: {kind, client, generation, server}, kind as in StepKind
-- For all: see append.lua
-- returns for each channel {header, entry}; or an error. The header has, separated by newlines:
--         id of the last entry, 0 for none; id before it; stale 0 or 1; the clock (Unix ms);
--         when the next field ends, or the whole state, or 0; when the whole state ends, -1 for
--         never, 0 without fields; the servers
-- cost O(fields of the client), O(owners) for a sweep or the end of a server

local fence_ms = 3600000
local r = rare()

local function sweep()
	r.load_owners()
	for client, o in pairs(c.owners) do
		if o and o.ended > 0 and ms - o.ended > fence_ms and o.count == 0 then
			c.owners[client] = false
			r.touch_owner(client)
		end
	end
end

local function end_owner(client, generation)
	local o = r.owner(client) or r.new_owner(client)
	if o.generation <= generation then
		o.generation, o.server, o.ended = generation, '', ms
		r.touch_owner(client)
		r.check_owned(o)
	end
end

local function end_server(server)
	r.load_owners()
	local list = {}
	for client, o in pairs(c.owners) do
		if o and o.server == server and o.ended == 0 then
			list[#list + 1] = client
		end
	end
	for _, client in ipairs(r.sort(list)) do
		local o = c.owners[client]
		o.ended = ms
		r.touch_owner(client)
		r.check_owned(o)
	end
end

-- Returns whether the generation is stale.
local function set_connected(client, generation, server)
	local o = r.owner(client)
	if is_fenced(o, generation, server) then
		return true
	end
	if o then
		r.connect(o, client, generation, server, {})
	end
end

local function unsubscribe(client, generation)
	local o = r.owner(client)
	if not o or o.generation > generation then
		return
	end
	for _, name in ipairs(r.owned_names(o)) do
		local f = get(name)
		if not f or f.grace == -1 then -- it has ended with its parent, or it stays
		elseif f.owners == ' ' .. client then
			r.end_field(name, '"left"')
		else
			r.remove_owner(name, f, client)
			r.check_owners(name)
		end
	end
	if o.generation < generation or o.ended == 0 then -- lower generations may not own fields again
		o.generation, o.server, o.ended = generation - 1, '', ms
		r.touch_owner(client)
	end
	r.check_owned(o) -- those that stay
end

local function step(i)
	local k = (i - 1) * 8
	local kind, client, generation, server = unpack(cmsgpack.unpack(ARGV[7+i]))
	begin(k)
	if not c.keep and kind ~= 1 then -- a generation that ends is recorded even then
		if kind == 0 then -- records without a position are of no use
			call('UNLINK', KEYS[k+4], KEYS[k+5], KEYS[k+6], KEYS[k+7], KEYS[k+8])
		end
		return {format('0\n0\n0\n%d\n0\n0\n', ms), ''}
	end
	local stale = false
	if kind == 0 then
		sweep()
	elseif kind == 1 then
		end_owner(client, generation)
	elseif kind == 2 then
		end_server(server)
	elseif kind == 3 then
		stale = set_connected(client, generation, server)
	else
		unsubscribe(client, generation)
	end
	local id, last, text, next_due, keep_until = commit()
	local servers = id ~= '0' and call('SMEMBERS', KEYS[k+3]) or {}
	return {format('%s\n%d\n%d\n%d\n%d\n%d\n%s', id, last, stale and 1 or 0, ms, next_due, keep_until,
		table.concat(servers, '\n')), text}
end

-- An error of one channel does not affect the others.
local replies = {}
for i = 1, #ARGV - 7 do
	local ok, reply = pcall(step, i)
	replies[i] = (ok or type(reply) == 'table') and reply or redis.error_reply('ERR ' .. reply)
end
return replies
