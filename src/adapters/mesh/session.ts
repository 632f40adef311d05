import c from 'compact-encoding'
import type { NoiseStream } from 'hyperswarm'
import type Protomux from 'protomux'
import type { NodeId } from '../../kit/ids.js'
import type { SignedCertificate } from '../../domain/membership/types.js'
import type { Link, LinkPath } from '../../ports/mesh.js'
import type { Courier } from './log.js'

/** Largest frame that is sent or taken, in bytes. */
export const MAX_FRAME_BYTES = 1024 * 1024
/** An entry handed over is answered within this time, in milliseconds. */
const COURIER_TIMEOUT_MS = 5000
/** Largest log entry that is taken from a peer, in bytes. */
const MAX_ENTRY_BYTES = 96 * 1024
/** Entries of one peer that may wait for their append at once. */
const MAX_ENTRIES_WAITING = 64

/** What the channels of one admitted stream need. */
export interface SessionParts {
  readonly id: number
  readonly peer: NodeId
  readonly peerVersion: string
  readonly certificate: SignedCertificate
  readonly stream: NoiseStream
  readonly mux: Protomux
  onFrame(link: Link, frame: Uint8Array): void
  onMalformed(reason: string): void
  onChannelClosed(): void
  /** Appends a peer's entry to the log; false when this node is no writer. */
  appendFor(entry: Uint8Array, peer: NodeId): Promise<boolean>
}

/** A link and the courier of log entries beside it. */
export interface Session {
  readonly link: Link
  readonly courier: Courier
}

/** Opens the A2A channel and the courier channel on a stream behind the gate. */
export function openSession(parts: SessionParts): Session {
  const courier = openCourier(parts)
  return { link: openLink(parts), courier }
}

function openLink(parts: SessionParts): Link {
  const { stream, mux } = parts
  let closed = false
  let waiting: (() => void)[] = []
  function wake(): void {
    const resolvers = waiting
    waiting = []
    for (const resolve of resolvers) resolve()
  }
  const channel = mux.createChannel({
    protocol: 'a2a-node/a2a',
    messages: [{ encoding: c.raw, onmessage: onMessage }],
    ondrain: wake,
    onclose: () => {
      if (closed) return
      closed = true
      wake()
      parts.onChannelClosed()
    }
  })
  const message = channel?.messages[0]
  const link: Link = {
    id: parts.id,
    peer: parts.peer,
    path: pathOf(stream),
    peerVersion: parts.peerVersion,
    certificate: parts.certificate,
    rttMs: () => stream.rawStream?.rtt ?? null,
    send: (frame) => !closed && message !== undefined && message.send(frame),
    drained: () => (closed || mux.drained ? Promise.resolve() : new Promise((resolve) => waiting.push(resolve))),
    get closed() {
      return closed
    },
    close: () => stream.destroy()
  }
  function onMessage(frame: Uint8Array): void {
    // Anything thrown in here would end the process.
    try {
      if (frame.byteLength > MAX_FRAME_BYTES) parts.onMalformed('a frame is too large')
      else parts.onFrame(link, frame)
    } catch (error) {
      parts.onMalformed(error instanceof Error ? error.message : 'unreadable')
    }
  }
  if (channel === null) closed = true
  else channel.open()
  return link
}

function pathOf(stream: NoiseStream): LinkPath {
  const host = stream.rawStream?.remoteHost ?? ''
  return host === '::1' || host.startsWith('127.') ? 'local' : 'direct'
}

/** One message each way: 0 = an entry with its number, 1 = the answer. */
function openCourier(parts: SessionParts): Courier {
  const answers = new Map<number, (ok: boolean) => void>()
  let next = 1
  let waiting = 0
  const channel = parts.mux.createChannel({
    protocol: 'a2a-node/log',
    messages: [
      { encoding: c.raw, onmessage: onEntry },
      { encoding: c.raw, onmessage: onAnswer }
    ],
    onclose: () => {
      for (const answer of [...answers.values()]) answer(false)
    }
  })
  channel?.open()

  function onEntry(raw: Uint8Array): void {
    if (raw.byteLength < 5 || raw.byteLength > MAX_ENTRY_BYTES + 4) return parts.onMalformed('a log entry of no sensible size')
    const number = readNumber(raw)
    if (waiting >= MAX_ENTRIES_WAITING) return reply(number, false)
    waiting++
    parts
      .appendFor(raw.slice(4), parts.peer)
      .catch(() => false)
      .then((ok) => {
        waiting--
        reply(number, ok)
      })
      .catch(() => {})
  }

  function reply(number: number, ok: boolean): void {
    const answer = new Uint8Array(5)
    writeNumber(answer, number)
    answer[4] = ok ? 1 : 0
    channel?.messages[1]?.send(answer)
  }

  function onAnswer(raw: Uint8Array): void {
    if (raw.byteLength !== 5) return parts.onMalformed('an answer of the log channel has 5 bytes')
    answers.get(readNumber(raw))?.(raw[4] === 1)
  }

  return (entry) =>
    new Promise((resolve) => {
      const message = channel?.messages[0]
      if (message === undefined || channel === null || channel.closed) return resolve(false)
      const number = next++
      const timer = setTimeout(() => finish(false), COURIER_TIMEOUT_MS)
      function finish(ok: boolean): void {
        clearTimeout(timer)
        answers.delete(number)
        resolve(ok)
      }
      answers.set(number, finish)
      const frame = new Uint8Array(entry.byteLength + 4)
      writeNumber(frame, number)
      frame.set(entry, 4)
      message.send(frame)
    })
}

function readNumber(bytes: Uint8Array): number {
  return new DataView(bytes.buffer, bytes.byteOffset, 4).getUint32(0)
}

function writeNumber(bytes: Uint8Array, number: number): void {
  new DataView(bytes.buffer, bytes.byteOffset, 4).setUint32(0, number)
}
