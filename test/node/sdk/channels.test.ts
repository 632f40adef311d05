import assert from 'node:assert/strict'
import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import type { A2AEnvelope } from '../../../src/domain/envelope/envelope.js'
import type { AgentChannel } from '../../../src/node/sdk/channel.js'
import { createLayer, type Layer } from '../../../src/node/sdk/layer.js'
import { failsWith } from '../../support/fails.js'
import { type FakeNode, World } from '../../support/fake-node.js'
import { holds } from '../../support/holds.js'

interface Scene {
  readonly world: World
  readonly here: FakeNode
  readonly peer: FakeNode
  readonly layer: Layer
  readonly theirs: Layer
  /** Addresses of the agents `mouth` here and `ear` there. */
  readonly mouth: string
  readonly ear: string
  /** Payloads that `ear` heard, in order. */
  readonly heard: unknown[]
  say(channel: AgentChannel, payload: unknown): Promise<void>
}

async function scene(t: Assert): Promise<Scene> {
  const world = new World(t)
  const here = await world.member('here')
  const peer = await world.member('peer')
  await world.link(here, peer)
  const heard: unknown[] = []
  const { address: mouth } = await here.core.attach({ id: 'mouth' })
  const { address: ear } = await peer.core.attach({ id: 'ear', onMessage: (message) => heard.push(message.payload) })
  await world.settle()
  const layer = createLayer(here.core)
  const say = (channel: AgentChannel, payload: unknown): Promise<void> =>
    channel.send(layer.envelopes.create({ sender: mouth, recipient: ear, type: 'notification', payload }))
  return { world, here, peer, layer, theirs: createLayer(peer.core), mouth, ear, heard, say }
}

test('Feature: a2a-mcp-protocols, Property 11: Channel message ordering', async (t) => {
  const { world, here, peer, layer, heard, say } = await scene(t)
  const arbScript = fc.array(
    fc.oneof({ weight: 4, arbitrary: fc.constant('send') }, { weight: 1, arbitrary: fc.constant('cut') }),
    {
      maxLength: 30
    }
  )
  await holds(
    t,
    fc.asyncProperty(arbScript, async (script) => {
      heard.length = 0
      const channel = await layer.channels.openChannel('mouth', 'ear')
      const sendings: Promise<void>[] = []
      let isCut = false
      for (const step of script) {
        if (step === 'send') sendings.push(say(channel, sendings.length))
        else {
          // What is under way when a link ends is lost with it; so everything arrives first.
          await world.settle()
          if (isCut) world.net.connect(here.id, peer.id)
          else world.net.disconnect(here.id, peer.id)
          isCut = !isCut
          await world.settle()
          assert.equal(channel.status, isCut ? 'reconnecting' : 'open')
        }
      }
      if (isCut) world.net.connect(here.id, peer.id)
      await world.settle()
      await Promise.all(sendings)
      assert.deepEqual(heard, [...sendings.keys()], 'each once, in the order they were sent')
      await channel.close()
    }),
    100
  )
})

test('a channel is open from the start with a peer that is there, and carries both ways', async (t) => {
  const { world, layer, theirs, mouth, ear, heard, say } = await scene(t)
  const channel = await layer.channels.openChannel('mouth', 'ear@peer')
  const back = await theirs.channels.openChannel(ear, mouth)
  t.alike(
    [channel.status, channel.transport, channel.localAgentId, channel.remoteAgentId],
    ['open', 'hyperswarm', mouth, ear]
  )
  const answers: A2AEnvelope[] = []
  channel.onMessage((message) => answers.push(message))
  await say(channel, 'hello')
  await back.send(theirs.envelopes.create({ sender: ear, recipient: mouth, type: 'notification', payload: 'and you' }))
  await world.settle()
  t.alike(heard, ['hello'])
  t.alike(
    answers.map((one) => [one.sender, one.payload]),
    [[ear, 'and you']]
  )
})

test('a peer that is away is waited for; without a link in time the channel never opens', async (t) => {
  const { world, here, peer, layer } = await scene(t)
  world.net.disconnect(here.id, peer.id)
  const opening = layer.channels.openChannel('mouth', 'ear', { giveUpMs: 2000 })
  await world.settle()
  t.alike(
    layer.channels.listChannels().map((one) => one.status),
    ['connecting']
  )
  world.net.connect(here.id, peer.id)
  t.is((await opening).status, 'open')
  world.net.disconnect(here.id, peer.id)
  await layer.channels.closeAll()
  const failing = failsWith(t, 'CHANNEL_CLOSED', () => layer.channels.openChannel('mouth', 'ear', { giveUpMs: 2000 }))
  await world.settle()
  await world.pass(2000)
  await failing
  t.alike(layer.channels.listChannels(), [])
})

test('a channel that finds no link in time closes, with its waiting messages; then it takes nothing', async (t) => {
  const { world, here, peer, layer, heard, say } = await scene(t)
  const channel = await layer.channels.openChannel('mouth', 'ear', { giveUpMs: 5000 })
  const statuses: string[] = []
  channel.onStatus((status) => statuses.push(status))
  world.net.disconnect(here.id, peer.id)
  const waiting = failsWith(t, 'CHANNEL_CLOSED', () => say(channel, 1))
  await world.pass(4750)
  t.is(channel.status, 'reconnecting')
  await world.pass(250)
  await waiting
  t.alike(statuses, ['reconnecting', 'closed'])
  t.is(layer.channels.getChannel(channel.id), undefined)
  world.net.connect(here.id, peer.id)
  await world.settle()
  const error = await failsWith(t, 'CHANNEL_CLOSED', () => say(channel, 2))
  t.ok(error.message.includes('no link within 5000 ms'))
  t.alike(heard, [])
  t.is(channel.status, 'closed', 'nothing opens it again')
})

test('a closed channel is closed for good, and messages that wait for it fail', async (t) => {
  const { world, here, peer, layer, say } = await scene(t)
  const channel = await layer.channels.openChannel('mouth', 'ear')
  t.is(layer.channels.getChannel(channel.id), channel)
  world.net.disconnect(here.id, peer.id)
  const waiting = failsWith(t, 'CHANNEL_CLOSED', () => say(channel, 1))
  await channel.close()
  await channel.close()
  await waiting
  channel.onMessage(() => t.fail('it is closed'))
  await failsWith(t, 'CHANNEL_CLOSED', () => say(channel, 2))
})

test('a channel carries the messages of its two agents, and a message that the rules refuse fails alone', async (t) => {
  const { world, layer, mouth, ear, heard, say } = await scene(t)
  const channel = await layer.channels.openChannel('mouth', 'ear')
  const other = layer.envelopes.create({ sender: mouth, recipient: mouth, type: 'notification', payload: 1 })
  await failsWith(t, 'USAGE', () => channel.send(other))
  const reply = layer.envelopes.create({
    sender: mouth,
    recipient: ear,
    type: 'response',
    payload: 1,
    correlationId: 'unasked'
  })
  const [refused, sent] = [failsWith(t, 'TIER_VIOLATION', () => channel.send(reply)), say(channel, 'after it')]
  await Promise.all([refused, sent])
  await world.settle()
  t.alike(heard, ['after it'])
  await failsWith(t, 'AGENT_NOT_FOUND', () => layer.channels.openChannel('ghost', 'ear'))
})

test('agents of one node have a channel too; a node that stops closes all', async (t) => {
  const { here, layer, mouth } = await scene(t)
  await here.core.attach({ id: 'neighbour' })
  const channel = await layer.channels.openChannel('mouth', 'neighbour@here')
  t.alike([channel.status, channel.transport], ['open', 'local'])
  await channel.send(
    layer.envelopes.create({ sender: mouth, recipient: channel.remoteAgentId, type: 'notification', payload: 1 })
  )
  await here.core.close()
  t.is(channel.status, 'closed')
})

test('messages that wait for a link are bounded by bytes as well; all accepted ones arrive', async (t) => {
  const { world, here, peer, layer, heard, say } = await scene(t)
  const channel = await layer.channels.openChannel('mouth', 'ear')
  world.net.disconnect(here.id, peer.id)
  await world.settle()
  const mebi = 'x'.repeat(1024 * 1024)
  const taken = Array.from({ length: 7 }, () => say(channel, mebi))
  await failsWith(t, 'OVERLOADED', () => say(channel, mebi + mebi))
  taken.push(say(channel, 'small'))
  world.net.connect(here.id, peer.id)
  await world.settle()
  await Promise.all(taken)
  await world.settle()
  t.is(heard.length, 8)
  await say(channel, mebi)
})
