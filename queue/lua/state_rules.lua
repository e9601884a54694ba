-- A piece of update_state.lua: the rules for updates that create or delete fields, or concern
-- owners or parts, as in check.go and limits.go of package state. Other updates do not need them.
-- returns nothing: functions
-- cost O(log n) for each group

-- Set by the piece of another package, see StateScript.
local extend, own_keys = nil, 0

local function refuse(reason, field, other, n, limit)
	return {reason, field, other or '', n or 0, limit or 0, {field}}
end

-- Parses a value that an addition can change.
local function parse_number(value)
	if value:match('^%-?%d+$') then
		local n = tonumber(value)
		if n >= -9007199254740991 and n <= 9007199254740991 and ('%d'):format(n) == value then
			return n
		end
	end
end

-- Returns a function that checks the update, and one
-- that writes what write_field does not.
local function define_rules(u)
	local ops, writer, client = u.ops, u.writer or '', u.client
	local plans, added = c.plans, c.added or {}
	local match, sub = string.match, string.sub

	-- If the update also deletes the parent, the holder is that before the update.
	local function check_part_deletion(op, old)
		local name = old.parent ~= '' and old.parent or op.parent
		local parent, planned = name and get(name), name and plans[name]
		local writes, holder = planned and not planned.gone, parent and parent.holder
		if writes and (planned.op.kind == 1 or not parent) then
			holder = planned.op.holder or writer
		end
		if name and holder ~= (op.holder or writer) then
			return refuse(holder and 'held_parent' or 'no_parent', op.field, name)
		end
	end

	local function check_parent(op)
		local p, name = plans[op.field], op.parent
		if p.gone then
			return op.held_parent and p.old and check_part_deletion(op, p.old)
		end
		name = name or p.old and p.old.parent ~= '' and p.old.parent
		if not name then
			return
		end
		local parent, planned = get(name), plans[name]
		if planned and planned.gone then
			parent, planned = nil, nil
		end
		local is_part, holder = parent and parent.parent ~= '', parent and parent.holder
		if planned then
			is_part = is_part or planned.op.parent
			if planned.op.kind == 1 or not parent then
				holder = planned.op.holder or writer
			end
		end
		if op.parent == op.field or op.parent and (is_part or #rare().parts_of(op.field) > 0) then
			return refuse('part', op.field)
		elseif not parent and not planned then
			return refuse('no_parent', op.field, name)
		elseif op.held_parent and holder ~= (op.holder or writer) then
			return refuse('held_parent', op.field, name)
		end
	end

	local function check_owned_limit()
		local owns = false
		for i = 1, u.max_owned and client and #ops or 0 do
			local op = ops[i]
			owns = owns or op.kind ~= 2 and op.own == 1
		end
		if not owns then
			return
		end
		local o = rare().owner(client)
		local count, first = o and o.count or 0, nil
		for _, op in ipairs(ops) do
			local mine = o and o.fields[op.field]
			if op.kind ~= 2 and op.own == 1 and not mine then
				count, first = count + 1, first or op.field
			elseif mine and (op.kind == 2 or op.own == 2) then
				count = count - 1
			end
		end
		if first and count > u.max_owned then
			return refuse('owned', first, '', count, u.max_owned)
		end
	end

	-- Returns how many fields with the prefix there are after the update. ending are parts that end
	-- with their parent.
	local function count_fields(prefix, ending)
		local n, len = 0, #prefix
		if not c.blank then
			-- A prefix ends with a slash, and '0' is the next byte.
			n = len == 0 and call('ZCARD', c.names) or call('ZLEXCOUNT', c.names, '[' .. prefix, '(' .. sub(prefix, 1, -2) .. '0')
		end
		for _, name in ipairs(c.touched) do -- fields that were due
			if sub(name, 1, len) == prefix then
				n = n - 1
			end
		end
		for name, p in pairs(plans) do
			if p.gone and p.old and sub(name, 1, len) == prefix then
				n = n - 1
			end
		end
		for name in pairs(ending) do
			if sub(name, 1, len) == prefix then
				n = n - 1
			end
		end
		for _, name in ipairs(added) do
			if sub(name, 1, len) == prefix then
				n = n + 1
			end
		end
		return n
	end

	local function group_limit(name, group)
		local limit, p = plans[name].op.group_max, plans['$max/' .. group]
		local value
		if p and (p.gone or p.value) then
			value = p.value
		else
			local f = get('$max/' .. group)
			value = f and value_of(f)
		end
		local n = value and parse_number(value)
		if n and n >= 0 and (not limit or n < limit) then
			return math.min(n, 2147483647)
		end
		return limit
	end

	local function refuse_full(group, n, limit)
		local list = {}
		if not c.blank then
			local found = call('ZRANGEBYLEX', c.names, '[' .. group, '(' .. sub(group, 1, -2) .. '0', 'LIMIT', '0', 64 + #c.touched)
			rare().load(found)
			for _, name in ipairs(found) do
				if c.fields[name] and #list < 64 then
					list[#list + 1] = name
				end
			end
		end
		return {'group', '', group, n, limit, list}
	end

	local function size_after(ending)
		local n = c.bytes
		for name, f in pairs(ending) do
			n = n - #name - f.size
		end
		for name, p in pairs(plans) do
			if p.old and (p.gone or p.value) then
				n = n - #name - p.old.size
			end
			if not p.gone and p.value then
				n = n + #name + #p.value
			end
		end
		return n
	end

	local function check_limits()
		local ending = {} -- parts that end with a field that the update deletes
		for name, p in pairs(plans) do
			if p.gone and p.old then
				for _, part in ipairs(rare().parts_of(name)) do
					ending[part] = not plans[part] and c.fields[part] or nil
				end
			end
		end
		local checked = {}
		for _, name in ipairs(added) do
			local group = plans[name].op.group
			group = group and match(group, '^#?([^#]+)$') or match(name, '^[^/]*/')
			local limit = group and not checked[group] and group_limit(name, group)
			if limit then
				checked[group] = true
				local n = count_fields(group, ending)
				if n > limit then
					return refuse_full(group, n, limit)
				end
			end
		end
		if #added > 0 and u.max_fields then
			local n = count_fields('', ending)
			if n > u.max_fields then
				return refuse('fields', added[1], '', n, u.max_fields)
			end
		end
		c.size_after = size_after(ending)
	end

	local function check()
		local refusal
		for i = 1, #ops do
			refusal = refusal or check_parent(ops[i])
		end
		return refusal or check_owned_limit() or check_limits()
	end

	local function write_deletions()
		for _, op in ipairs(ops) do
			if op.kind == 2 then
				c.entry.del = c.entry.del or {}
				rare().remove(op.field, c.entry.del)
				if not plans[op.field].old then
					table.insert(c.entry.del, op.field)
				end
			end
		end
	end

	local function write_owners()
		local owned = {}
		for _, op in ipairs(ops) do
			if op.kind ~= 2 and op.own == 2 then
				rare().disown(op.field, client or '')
			end
		end
		for _, op in ipairs(ops) do
			if op.kind ~= 2 and op.own == 1 and rare().add_owner(op.field, op.grace or 0, client) then
				owned[#owned + 1] = op.field
			end
		end
		if #owned > 0 then
			rare().connect(rare().owner(client), client, u.generation or 0, u.server or '', owned)
		end
	end

	return check, function()
		write_deletions()
		write_owners()
	end
end
