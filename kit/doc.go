// Package kit has what the packages under it share: metrics, conditions on versions, and the parts
// of checks and rounds that are the same for all lists.
package kit
