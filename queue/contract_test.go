package queue

import (
	"context"
	"iter"
	"time"
)

// contract is the methods that [Redis] and [Memory] share. The conformance suite tests both through
// it.
type contract interface {
	AppendChannel(ctx context.Context, push ChannelPush) (Appended, error)
	AppendChannels(ctx context.Context, pushes []ChannelPush) []Outcome[Appended]
	ReadChannel(ctx context.Context, channel string, after int64, limit int) (Page, error)
	ReadChannels(ctx context.Context, reads []ChannelRead) []Outcome[Page]
	ChannelHeads(ctx context.Context, known []ChannelKnown) []Outcome[ChannelHead]
	ClientHeads(ctx context.Context, known []ClientKnown) []Outcome[ClientHead]
	EraseMessage(ctx context.Context, e Erase) (Erased, error)
	StepStates(ctx context.Context, steps []StateStep) []Outcome[Appended]
	ReadStates(ctx context.Context, reads []StateRead) []Outcome[StatePage]
	StateChannels(ctx context.Context) iter.Seq2[string, error]
	KeepPositions(ctx context.Context, channels []string) error
	ChannelSize(ctx context.Context, channel string) (int, error)
	TrimChannel(ctx context.Context, channel string, maxAge time.Duration, maxCount int, dryRun bool) (int, error)
	BindClients(ctx context.Context, claims []Claim) []Outcome[Bound]
	RefreshClients(ctx context.Context, server string, list []HeldClient) []error
	Unbind(ctx context.Context, client string, generation int64) error
	Release(ctx context.Context, client, server string) (user string, generation int64, released bool, err error)
	Client(ctx context.Context, client string) (c Client, known bool, err error)
	AppendClient(ctx context.Context, push ClientPush) (ClientAppended, error)
	AppendClients(ctx context.Context, pushes []ClientPush) []Outcome[ClientAppended]
	ReadClient(ctx context.Context, client string, after int64, limit int) (Page, error)
	Window(ctx context.Context, client string, generation, after int64, limit int) (Page, error)
	Ack(ctx context.Context, client string, generation, id int64) (int, error)
	Acks(ctx context.Context, acks []Ack) []Outcome[int]
	ConfirmChannel(ctx context.Context, channel string, id int64) (*Marker, error)
	ConfirmClient(ctx context.Context, client string, id int64) (*Marker, error)
	PushRequest(ctx context.Context, request Request) error
}
