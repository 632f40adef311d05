import test from 'brittle'
import { createHash } from 'node:crypto'
import { type TestNode, testMesh, untilAgent, untilOnline, untilPeer } from '../support/nodes.js'

/** Links of a node at most. */
const PLACES = 3

/** What `text` of another node says to a text of its own. */
async function ask(from: TestNode, to: TestNode): Promise<void> {
  const text = `${from.name} asks ${to.name}`
  const reply = await from.api.call('message.send', { agent: `text@${to.name}`, text, timeoutMs: 60_000 })
  if (reply.outcome !== 'COMPLETED') throw new Error(`${text}: ${JSON.stringify(reply)}`)
  const { sha256 } = reply.payload as { sha256: string }
  if (sha256 !== createHash('sha256').update(text).digest('hex')) throw new Error(`${text}: not its answer`)
}

/** Peers of a node by whether there is a link: online with one, and without. */
async function rows(
  node: TestNode
): Promise<{ readonly linked: number; readonly relayed: number; readonly online: number }> {
  const { peers } = await node.api.call('peers.list', {})
  const online = peers.filter((one) => one.status === 'online')
  const relayed = online.filter((one) => one.path === 'relayed').length
  return { linked: online.length - relayed, relayed, online: online.length }
}

/**
 * Resolves when a node shows another offline; after how many milliseconds. Its minute without a proof may follow a
 * probe of the last moment.
 */
async function offlineAfter(node: TestNode, name: string): Promise<number> {
  const from = performance.now()
  for (;;) {
    try {
      await untilPeer(node, name, 'offline')
      return performance.now() - from
    } catch (error) {
      if (performance.now() - from > 150_000) throw error
    }
  }
}

test('six nodes with three places each: all see all, each sends to each, a killed one is offline within the time of a probe, a revoked one is out at once', {
  timeout: 400_000
}, async (t) => {
  const mesh = await testMesh(t)
  const env = { A2A_NODE_NETWORK_MAX_PEERS: String(PLACES) }
  const nodes = await mesh.meshWith({ env }, 'a', 'b', 'c', 'd', 'e', 'f')
  const [a, b] = nodes as [TestNode, TestNode]
  for (const node of nodes) {
    const { linked, online } = await rows(node)
    t.is(online, 5)
    t.ok(linked <= PLACES, `${node.name} has ${linked} links`)
  }
  for (const from of nodes) {
    for (const to of nodes) {
      if (from === to) continue
      await untilAgent(from, `text@${to.name}`)
      await ask(from, to)
    }
  }
  t.pass('thirty requests were answered')
  for (const node of nodes) {
    await untilOnline(node, 5)
    t.ok((await rows(node)).linked <= PLACES)
  }
  const [killed, revoked] = nodes.slice(-2) as [TestNode, TestNode]
  killed.kill('SIGKILL')
  await killed.exited
  const left = nodes.filter((one) => one !== killed)
  const seen = await Promise.all(left.map((node) => offlineAfter(node, killed.name)))
  t.ok(Math.max(...seen) >= 0, `offline after ${seen.map((ms) => Math.round(ms / 1000)).join(', ')} s`)
  await a.api.call('peers.revoke', { peer: revoked.name })
  for (const node of left.filter((one) => one !== revoked)) await untilPeer(node, revoked.name, 'revoked')
  await ask(b, a)
})
