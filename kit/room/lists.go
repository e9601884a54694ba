package room

import (
	"strings"

	"switchboard/internal/state"
)

// listKind is a kind of lists, which select rooms by some of the attributes in some of the
// orders. A room is in one list of each kind and order.
type listKind struct {
	visibility, mode, status, region, owner bool
	orders                                  string
}

// listKinds are the kinds, the most selective first. A query uses the first one whose attributes
// it has, and checks its other attributes on the cards.
var listKinds = []listKind{
	{owner: true, orders: "created activity"},
	{visibility: true, region: true, mode: true, status: true, orders: "created"},
	{region: true, mode: true, status: true, orders: "created"},
	{visibility: true, mode: true, status: true, orders: "created started ended activity"},
	{mode: true, status: true, orders: "created started ended activity"},
	{region: true, orders: "created activity"},
	{visibility: true, mode: true, orders: "created started ended activity"},
	{mode: true, orders: "created started ended activity"},
	{visibility: true, status: true, orders: "created started ended"},
	{status: true, orders: "created started ended"},
	{visibility: true, orders: "created started ended activity"},
	{orders: "created started ended activity"},
}

// name returns the name of the list with the attributes of a, such as
// created/mode=duel/status=waiting. ok is false if the kind does not have the order, or if a does
// not have an attribute.
func (k *listKind) name(order string, a attributes) (list string, ok bool) {
	if !strings.Contains(k.orders, order) {
		return "", false
	}
	list = order
	for _, part := range []struct {
		use         bool
		name, value string
	}{
		{k.visibility, "visibility", a.visibility}, {k.mode, "mode", a.mode}, {k.status, "status", a.status},
		{k.region, "region", a.region}, {k.owner, "owner", a.owner},
	} {
		if !part.use {
			continue
		}
		if part.value == "" {
			return "", false
		}
		list += "/" + part.name + "=" + short(state.Escape(part.value))
	}
	return list, true
}

// exact reports whether the kind uses all attributes of a.
func (k *listKind) exact(a attributes) bool {
	return k.visibility == (a.visibility != "") && k.mode == (a.mode != "") && k.status == (a.status != "") &&
		k.region == (a.region != "") && k.owner == (a.owner != "")
}

// findList returns the most selective list for a query, and whether it selects by all attributes.
func findList(order string, a attributes) (list string, exact bool) {
	for i := range listKinds {
		if list, ok := listKinds[i].name(order, a); ok {
			return list, listKinds[i].exact(a)
		}
	}
	return order, false // not reached: the last kind has every order
}
