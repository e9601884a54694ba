package system

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"time"

	"switchboard/bench/swarm"
	"switchboard/internal/freeport"
)

// Mosquitto is the MQTT broker of the distribution.
type Mosquitto struct {
	QoS byte      // of the subscriptions. Publishers always use 1, because it is acknowledged
	Log io.Writer // receives a line before installing. Zero means standard error
}

// mosquittoConfig is the configuration file, with the port and the user line to fill in. Nothing is
// written to disk, as with the Redis of other systems. Without allow_duplicate_messages mosquitto
// searches, for each subscriber, the list of subscribers that already have the message: with 10,000
// subscribers a delivery takes 32 µs of CPU instead of 9. No subscriber here has overlapping
// subscriptions.
const mosquittoConfig = `listener %s 127.0.0.1
allow_anonymous true
persistence false
max_inflight_messages 1000
max_queued_messages 10000
allow_duplicate_messages true
log_dest stderr
log_type error
connection_messages false
set_tcp_nodelay true
%s
`

// Version returns the version of the package.
func (*Mosquitto) Version() string { return debianVersion("mosquitto") }

// Notes describes the configuration.
func (m *Mosquitto) Notes() string {
	text := "MQTT 3.1.1 over TCP, no keep-alive, nothing written to disk, TCP_NODELAY, no check for duplicates of " +
		"overlapping subscriptions; publishers with QoS 1 (acknowledged by PUBACK), "
	if m.QoS == 0 {
		return text + "subscribers with QoS 0 and clean sessions: nothing is kept for disconnected clients"
	}
	return text + "subscribers with QoS 1 and kept sessions, which hold the messages for disconnected clients (10,000 each): " +
		"each delivery is acknowledged"
}

// Start implements [System].
func (m *Mosquitto) Start(ctx context.Context, s Setup) (Running, error) {
	binary, err := findProgram("mosquitto")
	if err != nil {
		if err := installDebian(ctx, m.Log, "mosquitto"); err != nil {
			return nil, err
		}
		if binary, err = findProgram("mosquitto"); err != nil {
			return nil, err
		}
	}
	addr, err := freeport.Address()
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	user := ""
	if os.Geteuid() == 0 {
		user = "user root" // otherwise it switches to the user mosquitto
	}
	config := filepath.Join(s.Dir, "mosquitto.conf")
	text := fmt.Sprintf(mosquittoConfig, port, user)
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		return nil, err
	}
	p, err := startPeer(ctx, "mosquitto", addr, exec.Command(binary, "-c", config))
	if err != nil {
		return nil, err
	}
	return &mosquitto{peer: p, qos: m.QoS}, nil
}

type mosquitto struct {
	*peer
	qos        byte
	publishers atomic.Int64 // number of publishers, for client ids
}

func (r *mosquitto) Dialect() swarm.Dialect { return &swarm.MQTT{QoS: r.qos} }

func (r *mosquitto) Publisher() (Publisher, error) {
	conn, err := net.DialTimeout("tcp", r.addr, callTimeout)
	if err != nil {
		return nil, err
	}
	p := &mqttPublisher{conn: conn, in: bufio.NewReader(conn)}
	if err := p.sendAndAwait(context.Background(), swarm.MQTTConnect(fmt.Sprint("publisher-", r.publishers.Add(1)), true), 0, 1); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("connect to mosquitto: %w", err)
	}
	return p, nil
}

// mqttPublisher waits for the acknowledgement of each message, or of all messages of a batch.
type mqttPublisher struct {
	conn net.Conn
	in   *bufio.Reader
	id   uint16
	out  []byte
}

// sendAndAwait writes packets and reads count acknowledgements. The first has packet identifier id.
func (p *mqttPublisher) sendAndAwait(ctx context.Context, packets []byte, id uint16, count int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := p.conn.SetDeadline(time.Now().Add(callTimeout)); err != nil {
		return err
	}
	if _, err := p.conn.Write(packets); err != nil {
		return err
	}
	for range count {
		got, err := swarm.ReadMQTTAck(p.in)
		if err != nil {
			return err
		}
		if got != id {
			return fmt.Errorf("message %d was acknowledged instead of %d", got, id)
		}
		id = nextPacketID(id)
	}
	return nil
}

// nextPacketID returns the packet identifier after id. 0 is not valid (MQTT 3.1.1 §2.3.1).
func nextPacketID(id uint16) uint16 { return max(id+1, 1) }

func (p *mqttPublisher) Publish(ctx context.Context, channel string, data []byte) error {
	p.id = nextPacketID(p.id)
	p.out = swarm.AppendMQTTPublish(p.out[:0], p.id, channel, data)
	return p.sendAndAwait(ctx, p.out, p.id, 1)
}

// PublishBatch sends all messages and then waits, because the protocol has no batches.
func (p *mqttPublisher) PublishBatch(ctx context.Context, channels []string, data [][]byte) error {
	first := nextPacketID(p.id)
	p.out = p.out[:0]
	for i, channel := range channels {
		p.id = nextPacketID(p.id)
		p.out = swarm.AppendMQTTPublish(p.out, p.id, channel, data[i])
	}
	return p.sendAndAwait(ctx, p.out, first, len(channels))
}

func (p *mqttPublisher) Close() error { return p.conn.Close() }
