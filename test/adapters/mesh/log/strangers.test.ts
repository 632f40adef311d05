import test from 'brittle'
import type { Assert } from 'brittle'
import c from 'compact-encoding'
import HyperDHT from 'hyperdht'
import { MAX_STRANGERS } from '../../../../src/adapters/mesh/links/connection-limits.js'
import { encodeGateMessage } from '../../../../src/adapters/mesh/links/hello.js'
import { hash } from '../../../../src/adapters/mesh/network/sodium.js'
import { utf8 } from '../../../../src/kit/ids.js'
import { inviteCode, type Lab, type LabNode, meshLab } from '../lab.js'
import { dial, type RawStream, rawDht } from '../raw-stream.js'
import { untilClosed } from '../stream-pair.js'

/** An owner with a member; both look for members. */
async function pairOfNodes(t: Assert): Promise<{ lab: Lab; owner: LabNode; member: LabNode }> {
  const lab = await meshLab(t)
  const owner = await lab.found('owner')
  await owner.start()
  return { lab, owner, member: await lab.member('member', owner) }
}

/** What the node keeps of streams and keys. */
function tables({ swarm }: LabNode): { connections: number; peers: number } {
  return { connections: swarm.connections.size, peers: swarm.peers.size }
}

test('two hundred fresh keys that know the topic: none gets past the gate, tables stay small, members go on', async (t) => {
  const { lab, owner, member } = await pairOfNodes(t)
  const { log } = owner.mesh
  const dht = await rawDht(t, lab.bootstrap)
  const before = log.length()
  let most = 0
  const watch = (): void => {
    most = Math.max(most, tables(owner).connections)
  }
  owner.swarm.on('connection', watch)
  const proof = encodeGateMessage({ type: 'hello', version: 1, maxFrameBytes: 1024 * 1024, software: 'x', proof: 'ff' })
  const attempt = async (): Promise<void> => {
    const keyPair = HyperDHT.keyPair()
    const stranger = await dial(dht, owner, keyPair).catch(() => null)
    stranger?.gate.messages[0]?.send(proof)
    for (const protocol of ['a2a-node/a2a', 'a2a-node/log', 'hypercore/alpha'])
      stranger?.mux.createChannel({ protocol })?.open()
    await stranger?.closed
  }
  // They also announce themselves where members meet, so that members dial them.
  const topic = hash(utf8('a2a-node/topic'), log.key, log.encryptionKey)
  const decoys = Array.from({ length: 5 }, () => HyperDHT.keyPair())
  await Promise.all(decoys.map((keyPair) => dht.announce(topic, keyPair).finished()))
  owner.takeover()
  for (let round = 0; round < 10; round++) await Promise.all(Array.from({ length: 20 }, attempt))

  t.alike(
    owner.seen.opened.map((link) => link.peer),
    [member.id],
    'nobody but the member has a link'
  )
  t.ok(most <= MAX_STRANGERS + 2, `${most} streams at once at most`)
  t.ok(tables(owner).peers <= 30, `${tables(owner).peers} keys are remembered`)
  t.is(log.length(), before)
  const [link] = owner.mesh.links.list()
  link.send(Uint8Array.of(1, 2, 3))
  await member.seen.until(() => member.seen.frames.length === 1)
  t.pass('the member is still served')
})

test('while strangers hold every place a member comes in, and a newcomer when one of them is gone', async (t) => {
  const { lab, owner, member } = await pairOfNodes(t)
  const dht = await rawDht(t, lab.bootstrap)
  const strangers: RawStream[] = []
  while (strangers.length < MAX_STRANGERS) {
    const one = await dial(dht, owner)
    if (await Promise.race([one.gate.fullyOpened(), one.closed.then(() => false)])) strangers.push(one)
  }
  // It may be cut before it is even open at the other end.
  await dial(dht, owner).then(
    (next) => next.closed,
    () => {}
  )
  t.is(owner.swarm.connections.size, MAX_STRANGERS + 1, 'the ninth is cut at once')

  member.mesh.links.list()[0].close('to come again')
  await owner.seen.until(() => owner.seen.closed.length === 1)
  await owner.seen.link(member.id)
  t.ok(
    strangers.every((one) => !one.stream.destroyed),
    'a member needs no place: the strangers are still there'
  )

  const code = await inviteCode(owner)
  strangers[0].stream.destroy()
  const newcomer = await lab.join('newcomer', code)
  t.ok(owner.mesh.log.view().members.has(newcomer.id))
})

test('one key has one stream: a second one takes the place of the first', async (t) => {
  const { lab, owner } = await pairOfNodes(t)
  const keyPair = HyperDHT.keyPair()
  const first = await dial(await rawDht(t, lab.bootstrap), owner, keyPair)
  t.ok(await first.gate.fullyOpened())
  const second = await dial(await rawDht(t, lab.bootstrap), owner, keyPair)
  await Promise.race([first.closed, second.closed])
  const ofKey = [...owner.swarm.connections].filter((one) => Buffer.from(one.remotePublicKey).equals(keyPair.publicKey))
  t.is(ofKey.length, 1)
})

test('a member that bombs a node with channels loses its stream and may come again', async (t) => {
  const { owner, member } = await pairOfNodes(t)
  const [stream] = [...member.swarm.connections]
  const open = (channel: number): number[] => [1, ...c.encode(c.uint, channel), ...c.encode(c.string, `x${channel}`), 0]
  const opens = Array.from({ length: 30 }, (_, place) => open(100 + place)).flatMap((message) => [
    message.length,
    ...message
  ])
  stream.write(Uint8Array.from([0, 0, 0, ...opens]))
  await untilClosed(stream)
  await owner.seen.until(() => owner.seen.closed.length === 1)
  t.is(owner.seen.closed[0].reason, 'too many channels on one stream')
  await owner.seen.link(member.id)
  t.pass('it is linked again')
})
