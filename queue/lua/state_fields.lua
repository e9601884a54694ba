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
-- returns nothing: functions and one change
-- cost O(log n) for each field that is due, and O(fields) for many of them

-- Each run of a script creates its functions, which takes about a tenth of a microsecond for each
-- function with its variables. So there are few here, and they share one variable. Functions that
-- most updates do not need are created when the first one is needed, see define_ in the other
-- pieces. An update of one field took 31 us when all functions were created, and takes 22 us; an
-- append takes 10.5 us.

-- The change of one channel:
--   messages, position, records, names, ends, clients, parts  the keys, in the order above
--   meta            of mq_m, as append needs it
--   keep            end of the state, nil without a state
--   due, bytes      earliest end of a field, and bytes of all fields
--   from            the time from which leases count, Unix ms
--   blank           st_, st_n_, st_x_ and st_p_ hold nothing, or nothing that counts
--   fields          by name: a field, or false; nil if it is not read
--   old_end         by name: the end in st_x_, of the fields that exist in the store
--   old_parent      by name: the parent in st_p_, of the fields that have one; nil if none has
--   indexed         whether more than values has changed
--   touched         names of changed fields, as a list and as a set
--   owners          by client: an owner, or false; nil if it is not read
--   touched_owners  like touched; nil if there are none
--   entry, entries, size, whole  as in state.go; entries and size are nil at first
local c
local rare -- returns the functions of state_rare.lua

local function end_of(f)
	if f.away > 0 and (f.lease == 0 or f.away <= f.lease) then
		return f.away
	end
	return f.lease
end

-- Returns a field, or false. It reads the record, unless it is given. A field that is written by
-- this change has the id false until the id is known. Owners are one string, with a space before
-- each. at is where the value begins in the record; a field that is written has a value instead.
local function get(name, record)
	local f = c.fields[name]
	if f ~= nil then
		return f
	end
	if record == nil then
		record = not c.blank and call('HGET', c.records, name)
	end
	f = false
	if record then
		local id, lease, away, grace, holder, parent, who, at =
			string.match(record, '^(%d+) (%d+) (%-?%d+) (%-?%d+) (%S*) (%S*)([^\n]*)\n()')
		if not id then
			error('malformed field ' .. name, 0)
		end
		f = {
			id = id, lease = tonumber(lease), away = tonumber(away), grace = tonumber(grace), holder = holder,
			parent = '', owners = who, size = #record - at + 1, at = at, record = record,
		}
		if parent ~= '~' then
			c.old_parent = c.old_parent or {}
			f.parent, c.old_parent[name] = parent, parent
		end
		c.old_end[name] = end_of(f)
	end
	c.fields[name] = f
	return f
end

local function value_of(f)
	return f.value or string.sub(f.record, f.at)
end

-- Keeps the owner that a record describes, or that it does not exist. names are those of its
-- fields.
local function parse_owner(client, record)
	local o = false
	if record then
		local generation, ended, server, names = string.match(record, '^(%-?%d+) (%d+) (%S*)(.*)$')
		o = {generation = tonumber(generation), ended = tonumber(ended), server = server, names = names}
	end
	c.owners[client] = o
	return o
end

-- Returns whether a connection is too old to change the state.
local function is_fenced(o, generation, server)
	if not o or o.generation ~= generation then
		return o and o.generation > generation
	end
	return o.ended > 0 and (o.server == '' or o.server == server)
end

-- Runs a command with any number of arguments, which may be pairs.
local function in_batches(command, key, list)
	for from = 1, list and #list or 0, 2000 do
		call(command, key, unpack(list, from, math.min(from + 1999, #list)))
	end
end

-- Begins a change: removes what is due.
local function begin(k)
	local meta = call('HMGET', KEYS[k+2], 'last', 'floor', 'bytes', 'until', 'st_keep', 'st_due', 'st_bytes')
	local keep = tonumber(meta[5])
	c = {
		messages = KEYS[k+1], position = KEYS[k+2], records = KEYS[k+4], names = KEYS[k+5], ends = KEYS[k+6],
		clients = KEYS[k+7], parts = KEYS[k+8],
		meta = meta, keep = keep, blank = not keep,
		due = keep and tonumber(meta[6] or 0) or 0, bytes = keep and tonumber(meta[7] or 0) or 0,
		fields = {}, old_end = {}, touched = {}, owners = {}, entry = {set = false, by = false, data = false, till = false},
	}
	if keep and keep > 0 and ms >= keep then
		rare().clear()
	end
	if c.due > 0 and c.due <= ms then
		rare().expire()
	end
end
