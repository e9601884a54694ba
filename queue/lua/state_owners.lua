-- A piece of the scripts that change states: the owners of fields, as in owners.go of package
-- state.
-- returns nothing: functions
-- cost O(fields of the client)

local function owner_list(f)
	local list = {}
	for client in gmatch(f.owners, '%S+') do
		list[#list + 1] = client
	end
	return list
end

local function set_owners(name, f, list)
	local texts = {}
	for i = 1, #list do
		texts[i] = json(list[i])
	end
	f.owners = #list > 0 and ' ' .. concat(list, ' ') or ''
	note('own', name, '[' .. concat(texts, ',') .. ']')
	touch(touched, name)
end

-- Ends the grace period of a field.
local function set_back(name, f)
	f.away = 0
	touch(touched, name)
	grow(2 * #name)
	entry.back = entry.back or {}
	entry.back[#entry.back + 1] = name
	if entry.till then
		entry.till[name] = nil
	end
	if f.lease > 0 then
		note('till', name, format('%d', f.lease))
	end
end

-- Makes an owned field away or not away, as its owners are connected or not.
local function check_owners(name)
	local f = get(name)
	if not f or f.owners == '' then
		return
	end
	local connected = false
	for client in gmatch(f.owners, '%S+') do
		local o = owner(client)
		if o and o.ended == 0 then
			connected = true
			break
		end
	end
	if connected then
		if f.away ~= 0 then
			set_back(name, f)
		end
	elseif f.away == 0 and f.grace == 0 then
		end_field(name, '"left"')
	elseif f.away == 0 then
		f.away = f.grace > 0 and ms + f.grace or -1
		touch(touched, name)
		grow(#name)
		note('away', name, format('%d', end_of(f)))
	end
end

local function owned_names(o)
	local list = {}
	for name in pairs(o.fields) do
		list[#list + 1] = name
	end
	load(list)
	return sort(list)
end

local function check_owned(o)
	for _, name in ipairs(owned_names(o)) do
		check_owners(name)
	end
end

-- Returns whether a connection is too old to change the state.
local function is_fenced(o, generation, server)
	if not o or o.generation ~= generation then
		return o and o.generation > generation
	end
	return o.ended > 0 and (o.server == '' or o.server == server)
end

local function new_owner(client)
	local o = {generation = 0, ended = 0, server = '', fields = {}, count = 0}
	owners[client] = o
	return o
end

local function remove_owner(name, f, client)
	local o, left, n = owner(client), {}, #name
	for _, one in ipairs(owner_list(f)) do
		if one ~= client then
			left[#left + 1] = one
			n = n + #one + 3
		end
	end
	if o and o.fields[name] then
		o.fields[name], o.count = nil, o.count - 1
		touch(touched_owners, client)
	end
	grow(n)
	set_owners(name, f, left)
end

-- Ends the ownership of a client, or that of all owners if client is ''.
local function disown(name, client)
	local f = get(name)
	if not f then -- it has ended with a parent that the update has disowned
		return
	end
	for _, one in ipairs(owner_list(f)) do
		if client == '' or client == one then
			remove_owner(name, f, one)
		end
	end
	if f.owners ~= '' then
		check_owners(name)
		return
	end
	f.grace = 0
	touch(touched, name)
	if f.away ~= 0 then
		set_back(name, f)
	end
end

-- Makes a client an owner of a field. Returns false if the field has ended with a parent that the
-- update has disowned.
local function add_owner(name, grace, client)
	local f = get(name)
	if not f then
		return false
	end
	f.grace = grace
	local o = owner(client) or new_owner(client)
	local list, at, found = owner_list(f), 1, false
	for i, one in ipairs(list) do
		found = found or one == client
		if is_before(one, client) then
			at = i + 1
		end
	end
	if not found then
		table.insert(list, at, client)
		set_owners(name, f, list)
	end
	if not o.fields[name] then
		o.fields[name], o.count = true, o.count + 1
	end
	return true
end

-- Records that an owner is connected. added are fields that it has become an owner of.
local function connect(o, client, generation, server, added)
	local was_ended = o.ended > 0
	o.generation, o.server, o.ended = generation, server, 0
	touch(touched_owners, client)
	if was_ended then
		check_owned(o)
		return
	end
	for _, name in ipairs(sort(added)) do -- its other fields are not away
		check_owners(name)
	end
end
