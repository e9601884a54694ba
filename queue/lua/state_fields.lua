-- A piece of the scripts that change states: the fields of one channel, and the entry that reports
-- their changes. It does what state.go of package state does. Changes are made in tables first;
-- state_write.lua writes them, so that an error leaves nothing half done.
-- KEYS[k+1] mq_ch_{channel}
-- KEYS[k+2] mq_m_{channel}
-- KEYS[k+4] st_{channel}
-- KEYS[k+5] st_n_{channel}
-- KEYS[k+6] st_x_{channel}
-- KEYS[k+7] st_o_{channel}
-- KEYS[k+8] st_p_{channel}
-- returns nothing: functions and the variables of one change
-- cost O(log n) for each field that is due, and O(fields) for many of them

local match, sub, gmatch, byte = string.match, string.sub, string.gmatch, string.byte
local concat, min = table.concat, math.min

local messages, position, records, names, ends, clients, parts -- keys
local meta, keep, due, bytes -- of mq_m; keep is nil without a state
local blank          -- st_, st_n_, st_x_ and st_p_ hold nothing, or nothing that counts
local fields         -- by name: a field, or false; nil if it is not read
local old_end        -- by name: the end in st_x_, of the fields that exist in the store
local old_parent     -- by name: the parent in st_p_
local touched        -- names of changed fields, as a list and as a set
local owners         -- by client: an owner, or false; nil if it is not read
local touched_owners -- like touched
local adopted        -- by parent: fields that became parts of it
local part_count, part_lists, part_reads
local entry, entries, size, whole -- as in state.go

local bytewise = 'B' < 'a' -- '<' follows the locale of the server

local function is_before(a, b)
	for i = 1, min(#a, #b) do
		local x, y = byte(a, i), byte(b, i)
		if x ~= y then
			return x < y
		end
	end
	return #a < #b
end

local function sort(list)
	table.sort(list, not bytewise and is_before or nil)
	return list
end

-- A field that is written by this change has the id false until the id is known. Owners are one
-- string, with a space before each.
local function parse_field(name, record)
	local id, lease, away, grace, holder, parent, who, value =
		match(record, '^(%d+) (%d+) (%-?%d+) (%-?%d+) (%S*) (%S*)([^\n]*)\n(.*)$')
	if not id then
		error('malformed field ' .. name, 0)
	end
	return {
		id = id, lease = tonumber(lease), away = tonumber(away), grace = tonumber(grace), holder = holder,
		parent = parent ~= '~' and parent or '', owners = who, value = value, record = record,
	}
end

local function end_of(f)
	if f.away > 0 and (f.lease == 0 or f.away <= f.lease) then
		return f.away
	end
	return f.lease
end

local function hold(name, record)
	local f = record and parse_field(name, record)
	fields[name] = f
	if f then
		old_end[name], old_parent[name] = end_of(f), f.parent
	end
	return f
end

-- Reads the fields of a list that are not read yet.
local function load(list)
	local missing = {}
	for i = 1, #list do
		if fields[list[i]] == nil then
			missing[#missing + 1] = list[i]
		end
	end
	for from = 1, #missing, 2000 do
		local to = min(from + 1999, #missing)
		local found = not blank and call('HMGET', records, unpack(missing, from, to)) or {}
		for i = from, to do
			hold(missing[i], found[i - from + 1] or false)
		end
	end
end

local function get(name)
	local f = fields[name]
	if f == nil then
		return hold(name, not blank and call('HGET', records, name))
	end
	return f
end

local function touch(list, name)
	if not list[name] then
		list[name] = true
		list[#list + 1] = name
	end
end

local function parse_owner(record)
	local generation, ended, server, rest = match(record, '^(%-?%d+) (%d+) (%S*)(.*)$')
	local o = {generation = tonumber(generation), ended = tonumber(ended), server = server, fields = {}, count = 0}
	for name in gmatch(rest, '%S+') do
		o.fields[name], o.count = true, o.count + 1
	end
	return o
end

local function owner(client)
	local o = owners[client]
	if o == nil then
		local record = keep and call('HGET', clients, client)
		o = record and parse_owner(record) or false
		owners[client] = o
	end
	return o
end

local function load_owners()
	local list = keep and call('HGETALL', clients) or {}
	for i = 1, #list, 2 do
		if owners[list[i]] == nil then
			owners[list[i]] = parse_owner(list[i + 1])
		end
	end
end

local function note(part, name, value)
	local map = entry[part]
	if not map then
		map = {}
		entry[part] = map
	end
	map[name] = value
end

local function note_gone(name, reason)
	note('gone', name, reason)
	for _, part in ipairs({'set', 'till', 'away', 'own'}) do
		if entry[part] then
			entry[part][name] = nil
		end
	end
	local back = entry.back
	for i = back and #back or 0, 1, -1 do
		if back[i] == name then
			table.remove(back, i)
		end
	end
end

local function grow(n)
	size = size + n + 24
	if size > 32768 and not whole then
		entries[#entries + 1] = entry
		entry, size = {}, n + 24
	end
end

-- Returns the names of the parts that st_p_ has for a field. After a few calls it reads all at once.
local function stored_parts(name)
	part_count = part_count or (blank and 0 or call('ZCARD', parts))
	local list = {}
	if part_count == 0 then
		return list
	end
	part_reads = part_reads + 1
	if part_reads > 16 and not part_lists then
		part_lists = {}
		for _, pair in ipairs(call('ZRANGE', parts, '0', '-1')) do
			local parent, part = match(pair, '^(%S+) (%S+)$')
			part_lists[parent] = part_lists[parent] or {}
			table.insert(part_lists[parent], part)
		end
	end
	if part_lists then
		return part_lists[name] or list
	end
	for i, pair in ipairs(call('ZRANGEBYLEX', parts, '[' .. name .. ' ', '(' .. name .. '!')) do
		list[i] = sub(pair, #name + 2)
	end
	return list
end

-- Returns the parts of a field in the order of names.
local function parts_of(name)
	local list, stored = {}, stored_parts(name)
	load(stored)
	for _, part in ipairs(stored) do
		if fields[part] and fields[part].parent == name then
			list[#list + 1] = part
		end
	end
	for part in pairs(adopted[name] or list) do
		if adopted[name] and fields[part] and fields[part].parent == name then
			list[#list + 1] = part
		end
	end
	return adopted[name] and sort(list) or list
end

local function set_parent(name, f, parent)
	if f.parent ~= parent then
		f.parent = parent
		adopted[parent] = adopted[parent] or {}
		adopted[parent][name] = true
	end
end

-- Removes a field and its parts, and appends their names to removed.
local function remove(name, removed)
	local f = get(name)
	if not f then
		return
	end
	removed[#removed + 1] = name
	for _, part in ipairs(parts_of(name)) do
		remove(part, removed)
	end
	for client in gmatch(f.owners, '%S+') do
		local o = owner(client)
		if o and o.fields[name] then
			o.fields[name], o.count = nil, o.count - 1
			touch(touched_owners, client)
		end
	end
	bytes = bytes - #name - #f.value
	fields[name] = false
	touch(touched, name)
end

-- Ends a field and its parts. The reason is JSON.
local function end_field(name, reason)
	local removed = {}
	remove(name, removed)
	for _, ended in ipairs(removed) do
		grow(#ended)
		note_gone(ended, reason)
	end
end

local function clear()
	if call('ZCARD', names) == 0 then
		return
	end
	entry.cleared = true
	load_owners()
	for client, o in pairs(owners) do
		if o.count > 0 then
			o.fields, o.count = {}, 0
			touch(touched_owners, client)
		end
	end
	blank, bytes, due = true, 0, 0
end

local function expire()
	local list = sort(call('ZRANGEBYSCORE', ends, '-inf', format('%d', ms)))
	load(list)
	for _, name in ipairs(list) do
		local f = fields[name]
		if f then -- it has not ended with its parent
			end_field(name, f.away == end_of(f) and '"left"' or '"expired"')
		end
	end
end

-- Begins a change: removes what is due.
local function begin(k)
	messages, position, records, names = KEYS[k+1], KEYS[k+2], KEYS[k+4], KEYS[k+5]
	ends, clients, parts = KEYS[k+6], KEYS[k+7], KEYS[k+8]
	meta = call('HMGET', position, 'last', 'floor', 'bytes', 'until', 'st_keep', 'st_due', 'st_bytes')
	keep, due, bytes = tonumber(meta[5]), tonumber(meta[6] or 0), tonumber(meta[7] or 0)
	blank = not keep
	if blank then
		due, bytes = 0, 0
	end
	fields, old_end, old_parent, touched, owners, touched_owners, adopted = {}, {}, {}, {}, {}, {}, {}
	part_count, part_lists, part_reads = nil, nil, 0
	entry, entries, size, whole = {}, {}, 0, false
	if keep and keep > 0 and ms >= keep then
		clear()
	end
	if due > 0 and due <= ms then
		expire()
	end
end
