import test, { type Assert } from 'brittle'
import { MemoryTelemetry } from '../../../src/adapters/telemetry/memory-telemetry.js'
import { FIRST_CREDIT, MAX_CREDIT, URGENT_CREDIT } from '../../../src/domain/channel/credit.js'
import type { ChannelMessage } from '../../../src/domain/channel/frames.js'
import { PeerTable } from '../../../src/node/peers/peer-table.js'
import { failsWith } from '../../support/fails.js'
import { type FakeLink, FakeNet, type FakeLinks } from '../../support/fake-links.js'
import { FakeLog, membershipOf } from '../../support/fake-log.js'
import { ManualClock } from '../../support/manual-clock.js'
import { type Actor, actor, founded } from '../../support/membership.js'

interface Side {
  readonly peers: PeerTable
  readonly links: FakeLinks
  /** What it was told, in order. */
  readonly told: string[]
  readonly messages: ChannelMessage[]
  /** Peers with whom something is under way. */
  readonly inUse: Set<string>
}

interface Scene {
  readonly clock: ManualClock
  readonly net: FakeNet
  readonly log: FakeLog
  readonly a: Actor
  readonly b: Actor
  /** As many as were asked for. */
  readonly members: readonly Actor[]
  side(of: Actor): Promise<Side>
}

function scene(t: Assert, others = 0): Scene {
  const [clock, net] = [new ManualClock(), new FakeNet()]
  const model = founded()
  const [a, b] = [actor('a'), actor('b')]
  const members = Array.from({ length: others }, (_, index) => actor(`member ${index}`))
  for (const node of [a, b, ...members]) model.join(actor('owner'), node)
  const log = new FakeLog(model)
  return {
    clock,
    net,
    log,
    a,
    b,
    members,
    side: async (of) => {
      const links = net.linksOf(of.id, membershipOf(log, of).certificate)
      const telemetry = new MemoryTelemetry({ clock, level: null, format: 'text', write: () => {} })
      const peers = new PeerTable({ clock, telemetry, links, log: log.of(of), nodeId: of.id, giveUpMs: 60_000 })
      const told: string[] = []
      const messages: ChannelMessage[] = []
      const inUse = new Set<string>()
      await peers.start({
        onOnline: () => told.push('online'),
        onRelinked: () => told.push('relinked'),
        onLinkLost: () => told.push('link lost'),
        onOffline: () => told.push('offline'),
        isInUse: (peer) => inUse.has(peer),
        onGivenUp: (_peer, lost) => told.push(`given up: ${lost}`),
        onMessage: (_peer, message) => {
          messages.push(message)
          return null
        }
      })
      t.teardown(() => peers.stop())
      return { peers, links, told, messages, inUse }
    }
  }
}

const hello: ChannelMessage = { kind: 'control', name: 'cancel', body: { requestId: 'r#1' } }

test('online means a live link, offline at once when the last one is gone', async (t) => {
  const { net, a, b, side, clock } = scene(t)
  const here = await side(a)
  await side(b)
  t.absent(here.peers.isOnline(b.id))
  t.is(here.peers.lastSeenAt(b.id), null)
  net.connect(a.id, b.id)
  t.ok(here.peers.isOnline(b.id))
  t.alike(here.peers.online(), [b.id])
  clock.advance(500)
  t.is(here.peers.lastSeenAt(b.id), clock.now())
  net.disconnect(a.id, b.id)
  const gone = clock.now()
  clock.advance(500)
  t.absent(here.peers.isOnline(b.id))
  t.is(here.peers.lastSeenAt(b.id), gone)
  t.alike(here.told, ['online', 'offline'])
})

test('a reconnect before the old link has closed keeps the peer online, on the newest link', async (t) => {
  const { net, a, b, side } = scene(t)
  const [here, there] = [await side(a), await side(b)]
  const [old] = net.connect(a.id, b.id)
  const [young] = net.connect(a.id, b.id)
  t.is(here.peers.link(b.id), young)
  here.peers.send(b.id, hello)
  t.is(old.sent.length, 0)
  net.cut(old)
  here.peers.send(b.id, hello)
  await net.idle()
  t.is(there.messages.length, 2)
  t.alike(here.told, ['online', 'relinked', 'link lost'])
  net.cut(young)
  t.alike(here.told, ['online', 'relinked', 'link lost', 'offline'])
})

test('when the newer link goes first, the older one serves on', async (t) => {
  const { net, a, b, side } = scene(t)
  const [here, there] = [await side(a), await side(b)]
  const [old] = net.connect(a.id, b.id)
  const [young] = net.connect(a.id, b.id)
  net.cut(young)
  t.is(here.peers.link(b.id), old)
  here.peers.send(b.id, hello)
  await net.idle()
  t.is(there.messages.length, 1)
  t.alike(here.told, ['online', 'relinked', 'link lost'])
})

test('a newer link that takes no messages any more leaves them to an older one', async (t) => {
  const { net, a, b, side } = scene(t)
  const [here, there] = [await side(a), await side(b)]
  const [old] = net.connect(a.id, b.id)
  const [young] = net.connect(a.id, b.id)
  young.closed = true
  t.is(here.peers.link(b.id), old)
  here.peers.send(b.id, hello)
  await net.idle()
  t.is(there.messages.length, 1)
})

test('half a message on one link does not disturb another', async (t) => {
  const { net, a, b, side } = scene(t)
  const [here, there] = [await side(a), await side(b)]
  const big: ChannelMessage = { kind: 'envelope', bytes: new Uint8Array(200_000).fill(7) }
  const [first, firstThere] = net.connect(a.id, b.id)
  firstThere.isHeld = true
  here.peers.send(b.id, big)
  net.connect(a.id, b.id)
  here.peers.send(b.id, big)
  await net.idle()
  t.is(there.messages.length, 1)
  net.cut(first)
  t.ok(here.peers.isOnline(b.id))
})

test('a close that is reported twice counts once', async (t) => {
  const { net, a, b, side } = scene(t)
  const here = await side(a)
  await side(b)
  const [link] = net.connect(a.id, b.id)
  net.cut(link)
  here.links.handlers?.onClose(link, 'again', false)
  t.alike(here.told, ['online', 'offline'])
})

test('large messages arrive whole and in order, for any sizes that the stream accepts at once', async (t) => {
  const { net, a, b, side } = scene(t)
  const [here, there] = [await side(a), await side(b)]
  const [link] = net.connect(a.id, b.id)
  let budget = 0
  let go: (() => void)[] = []
  const { send } = link
  link.send = (frame) => {
    send.call(link, frame)
    return ++budget % 2 === 0
  }
  link.drained = () => new Promise((resolve) => go.push(resolve))
  const sizes = [10, 300_000, 20, 700_000, 30]
  for (const size of sizes) here.peers.send(b.id, { kind: 'envelope', bytes: new Uint8Array(size) })
  for (let i = 0; i < 40; i++) {
    for (const resolve of go.splice(0)) resolve()
    await net.idle()
  }
  go = []
  t.alike(
    there.messages.map((one) => (one.kind === 'envelope' ? one.bytes.byteLength : -1)),
    sizes
  )
})

test('a message that is wholly on its way when the link is lost is not sent again by the next', async (t) => {
  const { net, a, b, side } = scene(t)
  const [here, there] = [await side(a), await side(b)]
  const [link] = net.connect(a.id, b.id)
  const { send } = link
  link.send = (frame) => {
    send.call(link, frame)
    return false
  }
  let drains = 0
  link.drained = () => (++drains === 1 ? Promise.resolve() : new Promise(() => {}))
  for (const size of [1, 2, 3]) here.peers.send(b.id, { kind: 'envelope', bytes: new Uint8Array(size) })
  await net.idle()
  link.close('lost')
  await net.idle()
  net.connect(a.id, b.id)
  await net.idle()
  const sizes = there.messages.map((one) => (one.kind === 'envelope' ? one.bytes.byteLength : -1))
  t.alike(sizes, [1, 2, 3], 'each once, in order')
})

test('a peer that reads nothing is OVERLOADED for its senders, not a leak', async (t) => {
  const { net, a, b, side } = scene(t)
  const here = await side(a)
  await side(b)
  const [link] = net.connect(a.id, b.id)
  link.send = () => false
  link.drained = () => new Promise(() => {})
  const error = await failsWith(t, 'OVERLOADED', () => {
    for (let i = 0; i < 2000; i++) here.peers.send(b.id, hello)
  })
  t.ok(error.retryable)
  await failsWith(t, 'PEER_OFFLINE', () => here.peers.send(actor('owner').id, hello))
})

test('64 MiB wait for all peers together; each gets through what is small, and all of it is sent once they read', async (t) => {
  const { net, clock, a, members, side } = scene(t, 8)
  const here = await side(a)
  const there = await Promise.all(members.map((one) => side(one)))
  const large: ChannelMessage = { kind: 'envelope', bytes: new Uint8Array(4 * 1024 * 1024) }
  const small: ChannelMessage = { kind: 'envelope', bytes: new Uint8Array(100_000) }
  const links = members.map(({ id }) => net.connect(a.id, id)[0])
  const sends = links.map((link) => link.send)
  const wake: (() => void)[] = []
  for (const link of links) {
    link.send = () => false
    link.drained = () => new Promise((resolve) => wake.push(resolve))
  }
  const taken = members.map(() => 0)
  const offer = (place: number, message: ChannelMessage): boolean => {
    try {
      here.peers.send(members[place]?.id ?? '', message)
      return true
    } catch {
      return false
    }
  }
  for (const place of members.keys()) while (offer(place, large)) taken[place] = (taken[place] ?? 0) + 1
  const all = taken.reduce((sum, one) => sum + one)
  t.ok(all > 4 && all <= 16, `${all} messages of 4 MiB wait: ${taken.join(' ')}`)
  for (const place of members.keys())
    if (taken[place] === 0) t.ok(offer(place, small), 'a small one still waits for each')
  for (const [place, link] of links.entries()) {
    link.send = sends[place]
    link.drained = () => Promise.resolve()
  }
  for (const resolve of wake) resolve()
  for (let step = 0; step < 400; step++) {
    await net.idle()
    clock.advance(10)
  }
  t.alike(
    there.map(({ messages }) => messages.length),
    taken.map((count) => Math.max(1, count))
  )
  t.ok(offer(0, large), 'and there is capacity again')
})

/** The n-th message of a flood. */
const numbered = (number: number): ChannelMessage => ({
  kind: 'control',
  name: 'cancel',
  body: { requestId: `r#${number}` }
})

test('an idle node accepts as much as it reads; messages for a node that does not read wait for credit, in order, also over another link', async (t) => {
  const { net, a, b, side } = scene(t)
  const [here, there] = [await side(a), await side(b)]
  net.connect(a.id, b.id)
  for (let number = 0; number < 20_000; number++) {
    here.peers.send(b.id, numbered(number))
    if (number % 500 === 499) await net.idle()
  }
  t.is(there.messages.length, 20_000, 'without any time going by')
  const [first] = there.links.open
  if (first === undefined) throw new Error('no link')
  first.isHeld = true
  for (let number = 20_000; number < 21_900; number++) here.peers.send(b.id, numbered(number))
  t.ok(first.waiting <= MAX_CREDIT, `${first.waiting} are under way`)
  const lost = first.waiting
  net.cut(first)
  net.connect(a.id, b.id)
  await net.idle()
  t.alike(
    there.messages.slice(20_000),
    Array.from({ length: 1900 - lost }, (_, place) => numbered(20_000 + lost + place)),
    'an inactive one goes over the next link'
  )
})

test('while others use a node, members that send much get 5,000 tokens a second each, 10,000 together, in turn', async (t) => {
  const { clock, net, a, members, side } = scene(t, 4)
  const here = await side(a)
  const others = await Promise.all(members.map(side))
  for (const { id } of members) net.connect(id, a.id)
  let sent = 0
  const pour = (): void => {
    for (const { peers } of others) {
      try {
        for (let count = 0; count < 1000; count++) peers.send(a.id, numbered(sent++))
      } catch {
        // Its queue is full: it has more to send than it may.
      }
    }
  }
  /** What came in the first of two seconds is not counted: bursts are over then. */
  const twoSeconds = async (): Promise<void> => {
    for (let step = 0; step < 100; step++) {
      here.peers.usedHere()
      pour()
      await net.idle()
      if (step === 50) here.messages.length = 0
      clock.advance(20)
      await net.idle()
    }
  }
  await twoSeconds()
  t.ok(
    here.messages.length > 9_000 && here.messages.length <= 10_500,
    `${here.messages.length} in a second of four that send much`
  )
  const [heavy] = members
  if (heavy === undefined) throw new Error('no member')
  for (const { id } of members.slice(1)) net.disconnect(a.id, id)
  await net.idle()
  await twoSeconds()
  t.ok(here.messages.length > 4_500 && here.messages.length <= 5_500, `${here.messages.length} of one`)
})

test('a peer that sends more than its credit is cut; one without flow control keeps to the rate of before', async (t) => {
  const { clock, net, a, b, side } = scene(t)
  const here = await side(a)
  await side(b)
  const [own, far] = net.connect(a.id, b.id)
  here.peers.usedHere()
  const flood = (count: number): void => {
    for (let frame = 0; frame < count; frame++) far.send(Uint8Array.of(2, 1))
  }
  // Credit that the node would give now waits for its share.
  flood(3000)
  await net.idle()
  t.alike(here.links.faults, [{ peer: b.id, reason: 'more messages than it has credit for' }])
  t.ok(own.closed)
  const [again, old] = net.connect(a.id, b.id)
  again.credit = null
  old.credit = null
  clock.advance(2000)
  for (let frame = 0; frame < 10_000; frame++) old.send(Uint8Array.of(2, 1))
  await net.idle()
  t.absent(again.closed, '10,000 at once')
  old.send(Uint8Array.of(2, 1))
  await net.idle()
  t.ok(again.closed)
})

test('pings go beyond the credit, and no further than both ends know', async (t) => {
  const { net, a, b, side } = scene(t)
  const [here, there] = [await side(a), await side(b)]
  const [, far] = net.connect(a.id, b.id)
  far.isHeld = true
  for (let number = 0; number < FIRST_CREDIT + 5; number++) here.peers.send(b.id, numbered(number))
  let answered = 0
  for (let count = 0; count < URGENT_CREDIT + 10; count++)
    void here.peers.ping(b.id).then(
      () => answered++,
      () => {}
    )
  await net.idle()
  t.is(far.waiting, FIRST_CREDIT + URGENT_CREDIT)
  far.isHeld = false
  far.deliver()
  await net.idle()
  t.is(there.messages.length, FIRST_CREDIT + 5)
  t.alike([there.links.faults, here.links.faults], [[], []])
  t.is(answered, URGENT_CREDIT)
})

test('a malformed frame cuts the link', async (t) => {
  const { net, a, b, side } = scene(t)
  const here = await side(a)
  await side(b)
  const [, there] = net.connect(a.id, b.id)
  there.send(new Uint8Array([99, 1, 2]))
  await net.idle()
  t.absent(here.peers.isOnline(b.id))
})

test('a ping measures the way there and back', async (t) => {
  const { net, a, b, side, clock } = scene(t)
  const here = await side(a)
  await side(b)
  const [, there] = net.connect(a.id, b.id)
  there.isHeld = true
  const ping = here.peers.ping(b.id)
  await net.idle()
  clock.advance(40)
  there.isHeld = false
  there.deliver()
  t.is(await ping, 40)
})

test('nobody answers the ping of another', async (t) => {
  const { net, log, a, b, side, clock } = scene(t)
  const c = actor('c')
  log.model.join(actor('owner'), c)
  log.changed()
  const here = await side(a)
  await side(b)
  await side(c)
  const ends: FakeLink[] = net.connect(a.id, b.id)
  ends[1].isHeld = true
  const [, liar] = net.connect(a.id, c.id)
  const ping = here.peers.ping(b.id)
  await net.idle()
  liar.send(new Uint8Array([3, 1]))
  await net.idle()
  clock.advance(5000)
  await failsWith(t, 'TIMEOUT', () => ping)
})

test('the links are asked for every active member but this node, and anew at each view', async (t) => {
  const { log, a, b, side } = scene(t)
  const here = await side(a)
  const owner = actor('owner')
  t.alike(here.links.wanted, [owner.id, b.id])
  log.model.revoke(owner, b)
  log.changed()
  t.alike(here.links.wanted, [owner.id])
  t.is(here.peers.certificate(b.id), null, 'a revoked node has no certificate')
  t.is(here.peers.certificate(owner.id)?.maxTier, 0)
})

test('messages that a lost link could not send go first over the next one, in order', async (t) => {
  const { net, a, b, side } = scene(t)
  const [here, there] = [await side(a), await side(b)]
  const [, slow] = net.connect(a.id, b.id)
  slow.isHeld = true
  const texts = Array.from({ length: 1400 }, (_, i) => `r#${i}`)
  for (const requestId of texts) here.peers.send(b.id, { kind: 'control', name: 'cancel', body: { requestId } })
  await net.idle()
  net.disconnect(a.id, b.id)
  t.is(here.peers.channel(b.id)?.status, 'reconnecting')
  net.connect(a.id, b.id)
  here.peers.send(b.id, { kind: 'control', name: 'cancel', body: { requestId: 'last' } })
  await net.idle()
  t.is(here.peers.channel(b.id)?.status, 'open')
  const heard = there.messages.map((one) => (one as { body: { requestId: string } }).body.requestId)
  // What the first link had taken is lost with it; what waited for room is not.
  t.ok(heard.length > 100)
  t.alike(heard, [...texts.slice(texts.length - heard.length + 1), 'last'])
})

test('a peer that does not come back in time loses what waited for it', async (t) => {
  const { net, a, b, side, clock } = scene(t)
  const here = await side(a)
  await side(b)
  const [, slow] = net.connect(a.id, b.id)
  slow.isHeld = true
  for (let i = 0; i < FIRST_CREDIT + 10; i++) here.peers.send(b.id, hello)
  await net.idle()
  net.disconnect(a.id, b.id)
  clock.advance(59_999)
  t.is(here.peers.channel(b.id)?.status, 'reconnecting')
  clock.advance(1)
  t.is(here.peers.channel(b.id), null)
  t.alike(here.told, ['online', 'offline', 'given up: 10'])
})

test('messages lost with a channel free their bytes for others', async (t) => {
  const { net, a, b, side, clock } = scene(t)
  const here = await side(a)
  await side(b)
  const large: ChannelMessage = { kind: 'envelope', bytes: new Uint8Array(4 * 1024 * 1024) }
  for (let round = 0; round < 8; round++) {
    const [link] = net.connect(a.id, b.id)
    link.send = () => false
    link.drained = () => new Promise(() => {})
    here.peers.send(b.id, large)
    here.peers.send(b.id, large)
    net.disconnect(a.id, b.id)
    clock.advance(60_000)
    t.is(here.told.at(-1), 'given up: 2')
  }
})
