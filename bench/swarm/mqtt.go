package swarm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// Types of MQTT 3.1.1 control packets: the first byte with its required flags (§2.2).
const (
	mqttConnect   = 0x10
	mqttConnack   = 0x20
	mqttPublish   = 0x30
	mqttPuback    = 0x40
	mqttSubscribe = 0x82
	mqttSuback    = 0x90

	mqttQoS1 = 0x02 // flag of a publish
)

// MQTT is MQTT 3.1.1 over TCP.
type MQTT struct {
	// QoS is the quality of service of the subscription. With 1 each message is acknowledged, and the
	// server keeps the session of a disconnected client and the messages for it.
	QoS byte
}

// NextFrame implements [Dialect]. A frame is a whole packet.
func (*MQTT) NextFrame(buf []byte) (Frame, int, error) {
	head, length, err := mqttHeader(buf)
	switch size := head + length; {
	case err != nil:
		return Frame{}, 0, err
	case length > maxMessage:
		return Frame{}, 0, errTooLong
	case head == 0 || len(buf) < size:
		return Frame{}, 0, nil
	default:
		return Frame{OpText, buf[:size]}, size, nil
	}
}

// mqttHeader parses the fixed header; head is 0 if it is incomplete.
func mqttHeader(buf []byte) (head, length int, err error) {
	for i := 1; i < len(buf); i++ {
		length |= int(buf[i]&0x7f) << (7 * (i - 1))
		if buf[i]&0x80 == 0 {
			return i + 1, length, nil
		}
		if i == 4 {
			return 0, 0, errors.New("the length of an MQTT packet has more than four bytes")
		}
	}
	return 0, 0, nil
}

// AppendMQTT appends a packet with first byte and body.
func AppendMQTT(dst []byte, first byte, body []byte) []byte {
	dst = append(dst, first)
	length := len(body)
	for ; length > 0x7f; length >>= 7 {
		dst = append(dst, byte(length)|0x80)
	}
	return append(append(dst, byte(length)), body...)
}

// appendMQTTString appends a string with its length. It is cut to 65,535 bytes.
func appendMQTTString(dst []byte, s string) []byte {
	s = s[:min(len(s), math.MaxUint16)]
	return append(binary.BigEndian.AppendUint16(dst, uint16(len(s))), s...)
}

// MQTTConnect returns the packet that opens a session, without a user and without keep-alive.
func MQTTConnect(client string, clean bool) []byte {
	body := append(appendMQTTString(nil, "MQTT"), 4, 0, 0, 0) // protocol level, flags, keep-alive
	if clean {
		body[7] = 0x02
	}
	return AppendMQTT(nil, mqttConnect, appendMQTTString(body, client))
}

// AppendMQTTPublish appends a message of QoS 1. id must not be 0.
func AppendMQTTPublish(dst []byte, id uint16, topic string, payload []byte) []byte {
	body := binary.BigEndian.AppendUint16(appendMQTTString(make([]byte, 0, len(topic)+len(payload)+4), topic), id)
	return AppendMQTT(dst, mqttPublish|mqttQoS1, append(body, payload...))
}

// ReadMQTTAck reads the answer to a connect (CONNACK, id 0) or to a publish (PUBACK).
func ReadMQTTAck(r io.Reader) (id uint16, err error) {
	var p [4]byte
	if _, err := io.ReadFull(r, p[:]); err != nil {
		return 0, err
	}
	switch {
	case p[0] == mqttConnack && p[1] == 2 && p[3] == 0:
		return 0, nil
	case p[0] == mqttPuback && p[1] == 2:
		return binary.BigEndian.Uint16(p[2:]), nil
	}
	return 0, fmt.Errorf("the server answered with %x", p)
}

// Upgrade implements [Dialect].
func (*MQTT) Upgrade(Connection) []byte { return nil }

// Subscribe sends connect and subscribe in one write.
func (d *MQTT) Subscribe(c Connection) error {
	subscribe := append(appendMQTTString([]byte{0, 1}, c.Channel()), d.QoS)
	return c.Send(AppendMQTT(MQTTConnect(c.Client(), d.QoS == 0), mqttSubscribe, subscribe))
}

// Handle implements [Dialect].
func (d *MQTT) Handle(c Connection, packet []byte) error {
	head, _, err := mqttHeader(packet)
	if err == nil && head == 0 {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return err
	}
	body := packet[head:]
	switch first := packet[0]; {
	case first&0xF0 == mqttPublish:
		return d.publish(c, first, body)
	case first == mqttConnack && len(body) == 2 && body[1] == 0:
		if c.Resuming() && d.QoS > 0 && body[0]&1 == 0 {
			return errors.New("the server has not kept the session")
		}
		return nil
	case first == mqttSuback && len(body) == 3 && body[2] == d.QoS:
		return c.Ready()
	}
	return fmt.Errorf("the server sent %.100x", packet)
}

// publish delivers a message, and acknowledges it if its QoS is 1.
func (d *MQTT) publish(c Connection, first byte, body []byte) error {
	if len(body) < 2 {
		return io.ErrUnexpectedEOF
	}
	topic, rest := int(binary.BigEndian.Uint16(body)), body[2:]
	qos := first >> 1 & 3
	if len(rest) < topic+2*int(min(qos, 1)) {
		return io.ErrUnexpectedEOF
	}
	if string(rest[:topic]) != c.Channel() {
		c.Unexpected(body)
		return nil
	}
	rest = rest[topic:]
	switch qos {
	case 0:
	case 1:
		if err := c.Send([]byte{mqttPuback, 2, rest[0], rest[1]}); err != nil {
			return err
		}
		rest = rest[2:]
	default:
		return fmt.Errorf("a message has quality of service %d, which was not requested", qos)
	}
	c.Deliver(rest, 0)
	return nil
}
