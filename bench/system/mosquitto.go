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
	QoS byte      // of the subscriptions. Publishers always have 1: they are answered
	Log io.Writer // told what is installed. Zero means standard error
}

// mosquittoConfig has the port and the user line to fill in. Nothing is written to the disk, as by
// the Redis of the others. With duplicates allowed it does not look, for each of 10,000 subscribers, through the names of
// those who have the message: 9 µs of CPU a delivery instead of 32 (nobody here subscribes twice).
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

// Name implements [System].
func (m *Mosquitto) Name() string { return "mosquitto" }

// Version is that of the package.
func (*Mosquitto) Version() string { return version("mosquitto") }

// Notes says how it is configured.
func (m *Mosquitto) Notes() string {
	text := "MQTT 3.1.1 over TCP, no keep-alive, nothing written to disk, TCP_NODELAY, duplicates of overlapping subscriptions " +
		"not looked for; publishers with QoS 1 (answered by PUBACK), "
	if m.QoS == 0 {
		return text + "subscribers with QoS 0 and clean sessions: nothing is kept for who is away"
	}
	return text + "subscribers with QoS 1 and kept sessions, which is how it keeps what a client misses (10,000 messages each): " +
		"each delivery is acknowledged"
}

// Start implements [System].
func (m *Mosquitto) Start(ctx context.Context, s Setup) (Running, error) {
	binary, err := program("mosquitto")
	if err != nil {
		if err := installDebian(ctx, m.Log, "mosquitto"); err != nil {
			return nil, err
		}
		if binary, err = program("mosquitto"); err != nil {
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
		user = "user root" // else it would look for a user of its own
	}
	config := filepath.Join(s.Dir, "mosquitto.conf")
	text := fmt.Sprintf(mosquittoConfig, port, user)
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		return nil, err
	}
	p, err := startPeer(ctx, m.Name(), addr, exec.Command(binary, "-c", config))
	if err != nil {
		return nil, err
	}
	return &mosquitto{peer: p, qos: m.QoS}, nil
}

type mosquitto struct {
	*peer
	qos        byte
	publishers atomic.Int64 // for their client ids
}

func (r *mosquitto) Dialect() swarm.Dialect { return &swarm.MQTT{QoS: r.qos} }

func (r *mosquitto) Publisher() (Publisher, error) {
	conn, err := net.DialTimeout("tcp", r.addr, callTime)
	if err != nil {
		return nil, err
	}
	p := &mqttPublisher{conn: conn, in: bufio.NewReader(conn)}
	if err := p.call(context.Background(), swarm.MQTTConnect(fmt.Sprint("publisher-", r.publishers.Add(1)), true), 0, 1); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("connect to mosquitto: %w", err)
	}
	return p, nil
}

// mqttPublisher waits for the acknowledgement of each message, or of all that were sent at once.
type mqttPublisher struct {
	conn net.Conn
	in   *bufio.Reader
	id   uint16
	out  []byte
}

// call writes packets and reads so many acknowledgements; the first is of id.
func (p *mqttPublisher) call(ctx context.Context, packets []byte, id uint16, count int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := p.conn.SetDeadline(time.Now().Add(callTime)); err != nil {
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
		id = nextID(id)
	}
	return nil
}

// nextID is the packet identifier behind id: 0 is none (MQTT 3.1.1 §2.3.1).
func nextID(id uint16) uint16 { return max(id+1, 1) }

func (p *mqttPublisher) Publish(ctx context.Context, channel string, data []byte) error {
	p.id = nextID(p.id)
	p.out = swarm.AppendMQTTPublish(p.out[:0], p.id, channel, data)
	return p.call(ctx, p.out, p.id, 1)
}

// PublishBatch sends all before it waits: that is what the protocol has.
func (p *mqttPublisher) PublishBatch(ctx context.Context, channels []string, data [][]byte) error {
	first := nextID(p.id)
	p.out = p.out[:0]
	for i, channel := range channels {
		p.id = nextID(p.id)
		p.out = swarm.AppendMQTTPublish(p.out, p.id, channel, data[i])
	}
	return p.call(ctx, p.out, first, len(channels))
}

func (p *mqttPublisher) Close() error { return p.conn.Close() }
