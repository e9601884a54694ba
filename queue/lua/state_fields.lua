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

-- Every run of a script creates all its functions, and a function that uses many variables of the
-- script takes up to half a microsecond. Most updates need few of them: the others are in
-- state_rare.lua, which creates its functions when the first one is needed.

local match, sub, concat, min = string.match, string.sub, table.concat, math.min

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
local rare           -- returns the functions of state_rare.lua

-- Runs a command with any number of arguments, which may be pairs.
local function in_batches(command, key, list)
	for from = 1, list and #list or 0, 2000 do
		call(command, key, unpack(list, from, min(from + 1999, #list)))
	end
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

local function note(part, name, value)
	local map = entry[part]
	if not map then
		map = {}
		entry[part] = map
	end
	map[name] = value
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
	fields, old_end, old_parent, touched, owners, touched_owners, adopted = {}, {}, {}, {}, {}, {}, nil
	part_count, part_lists, part_reads = nil, nil, 0
	entry, entries, size, whole = {}, {}, 0, false
	if keep and keep > 0 and ms >= keep then
		rare().clear()
	end
	if due > 0 and due <= ms then
		rare().expire()
	end
end
