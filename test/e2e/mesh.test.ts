import test from 'brittle'
import type { MeshSettingsInfo } from '../../src/ports/node-api.js'
import { localMesh, untilAgent, untilOnline, untilPeer, untilTrue } from '../support/nodes.js'

test('two nodes join by an invite, list each other, ping, send and call', async (t) => {
  const mesh = await localMesh(t)
  const a = await mesh.start('laptop')
  const invite = await a.json<{ code: string; tier: string; uses: number }>(['invite', '--mine'])
  t.is(invite.tier, 'L1')
  t.is(invite.uses, 1)
  const b = await mesh.start('gpu-box', { join: invite.code })
  await Promise.all([untilOnline(a, 1), untilOnline(b, 1)])

  const { peers } = await a.json<{
    peers: { name: string; status: string; tier: string; agents: string[]; path: string }[]
  }>(['peers'])
  t.alike(
    peers.map(({ name, status, tier, agents, path }) => ({ name, status, tier, agents, path })),
    [{ name: 'gpu-box', status: 'online', tier: 'L1', agents: ['files', 'host', 'text'], path: 'local' }]
  )
  const text = await a.cli(['peers'])
  t.ok(/gpu-box\s+\S+\s+L1\s+mine\s+online\s+local/.test(text.stdout), 'the table shows the peer')

  const ping = await a.json<{ peer: { name: string }; rttMs: number[] }>(['ping', 'gpu-box', '-c', '2'])
  t.is(ping.peer.name, 'gpu-box')
  t.is(ping.rttMs.length, 2)

  const sent = await a.json<{ outcome: string; agent: string; payload: { words: number } }>([
    'send',
    'text@gpu-box',
    'three small words'
  ])
  t.is(sent.outcome, 'COMPLETED')
  t.is(sent.agent, 'text@gpu-box')
  t.is(sent.payload.words, 3)

  const called = await b.json<{ outcome: string; agent: string; payload: { cores: number } }>([
    'call',
    'host@laptop',
    'host.report',
    '{}'
  ])
  t.is(called.agent, 'host@laptop')
  t.ok(called.payload.cores >= 1)
})

test('two nodes that start at the same moment find each other again', async (t) => {
  const mesh = await localMesh(t)
  const [a, b] = await mesh.meshOf('a', 'b')
  await Promise.all([a.stop(), b.stop()])
  const again = await Promise.all([mesh.start('a', { home: a.home }), mesh.start('b', { home: b.home })])
  await Promise.all(again.map((node) => untilOnline(node, 1)))
  t.is(again[0].info.node.id, a.info.node.id, 'a home keeps its key')
  t.is(again[0].info.mesh.id, b.info.mesh.id, 'and its mesh')
})

test('a broadcast reaches every agent and lists each with its outcome', async (t) => {
  const mesh = await localMesh(t)
  const [a] = await mesh.meshOf('a', 'b')
  const reply = await a.json<{ targets: { agent: string; outcome: string }[] }>([
    'send',
    '*',
    'hello',
    '--type',
    'notification'
  ])
  const outcomes = Object.fromEntries(reply.targets.map((one) => [one.agent, one.outcome]))
  t.alike(outcomes, {
    'files@a': 'DELIVERED',
    'host@a': 'DELIVERED',
    'text@a': 'DELIVERED',
    'files@b': 'SENT',
    'host@b': 'SENT',
    'text@b': 'SENT',
    'operator@b': 'SENT'
  })
  const request = await a.cli(['send', '*', 'hi', '--json'])
  const { targets } = JSON.parse(request.stdout) as { targets: { agent: string; outcome: string }[] }
  t.is(request.code, 0, 'files, to which nothing is granted, is left out')
  t.is(targets.find(({ agent }) => agent === 'files@a')?.outcome, 'FORBIDDEN')
})

test('the owner replaces the tier table and the allow list for every node, and takes it back', async (t) => {
  const mesh = await localMesh(t)
  const [a, b] = await mesh.meshOf('a', 'b')
  await untilAgent(b, 'host@a')
  const shipped = await b.json<MeshSettingsInfo>(['mesh', 'show'])
  t.is(shipped.serial, 0)
  t.alike(
    shipped.tiers.find(({ from }) => from === 'L1'),
    { from: 'L1', to: ['L0', 'L1'], justification: false }
  )
  t.is((await b.cli(['call', 'host@a', 'host.report', '{}'])).code, 0)

  const tiers = shipped.tiers.map((row) => (row.from === 'L1' ? { ...row, to: ['L1'] } : row))
  const set = await a.json<MeshSettingsInfo>(['mesh', 'set', '-'], JSON.stringify({ tiers }))
  t.is(set.serial, 1)
  await untilTrue(async () => (await b.json<MeshSettingsInfo>(['mesh', 'show'])).serial === 1, 'b follows')
  const refused = await b.cli(['call', 'host@a', 'host.report', '{}', '--json'])
  t.is(refused.code, 5)
  t.is(JSON.parse(refused.stderr).error.code, 'TIER_VIOLATION')

  t.is((await b.cli(['mesh', 'set', '-'], JSON.stringify({ tiers }))).code, 5, 'a member sets nothing')
  const allow = await a.json<MeshSettingsInfo>(
    ['mesh', 'set', '-'],
    '{"sandboxes":{"enforced":true,"allow":["text","host@b"]}}'
  )
  t.alike(allow.sandboxes, { enforced: true, allow: ['text', 'host@b'] })
  t.alike(allow.tiers, set.tiers, 'absent settings stay')
  t.is((await a.json<MeshSettingsInfo>(['mesh', 'reset'])).serial, 3)
  await untilTrue(async () => (await b.json<MeshSettingsInfo>(['mesh', 'show'])).serial === 3, 'b follows')
  t.is((await b.cli(['call', 'host@a', 'host.report', '{}'])).code, 0)
  for (const bad of [
    '{}',
    '[]',
    'x',
    '{"tiers":[{"from":"L9","to":[],"justification":true}]}',
    '{"sandboxes":{"enforced":1}}'
  ])
    t.is((await a.cli(['mesh', 'set', '-'], bad)).code, 2, bad)
})

test('mesh set refuses keys it does not know and settings that were made of older ones, and signs nothing that is in force', async (t) => {
  const mesh = await localMesh(t)
  const [a] = await mesh.meshOf('a')
  const sandboxes = { enforced: true, allow: ['text'] }
  const slips: [object, string][] = [
    [{ sandboxs: sandboxes, tiers: undefined, sandboxes }, 'did you mean sandboxes?'],
    [{ sandboxes, tires: [] }, 'did you mean tiers?'],
    [{ sandboxes: { ...sandboxes, alow: [] } }, 'did you mean allow?'],
    [{ sandboxes: { ...sandboxes, allow: [1] } }, 'sandboxes is not'],
    [{ sandboxes: { enforced: true } }, 'sandboxes is not'],
    [{ sandboxes, extra: 1 }, 'has no key "extra"'],
    [{ schema: 'a2a-node/peers@1', sandboxes }, 'schema is a2a-node/mesh@1'],
    [{ serial: 'x', sandboxes }, 'serial is the number']
  ]
  for (const [slip, said] of slips) {
    const refused = await a.cli(['mesh', 'set', '-'], JSON.stringify(slip))
    t.is(refused.code, 2, said)
    t.ok(refused.stderr.includes(said), refused.stderr)
  }
  const shipped = await a.json<MeshSettingsInfo>(['mesh', 'show'])
  t.is(shipped.serial, 0, 'nothing was signed')
  const row = { ...shipped.tiers[0], extra: true }
  t.is(
    (await a.cli(['mesh', 'set', '-'], JSON.stringify({ tiers: [row, ...shipped.tiers.slice(1)] }))).code,
    2,
    'a row of tiers as well'
  )

  const set = await a.json<MeshSettingsInfo & { changed: boolean }>(
    ['mesh', 'set', '-'],
    JSON.stringify({ ...shipped, sandboxes })
  )
  t.alike({ serial: set.serial, changed: set.changed }, { serial: 1, changed: true })
  const again = await a.cli(['mesh', 'set', '-'], JSON.stringify(set))
  t.is(again.code, 0)
  t.ok(again.stderr.includes('nothing was changed'), again.stderr)
  t.is((await a.json<MeshSettingsInfo>(['mesh', 'show'])).serial, 1)
  const late = await a.cli(
    ['mesh', 'set', '-', '--json'],
    JSON.stringify({ ...shipped, sandboxes: { enforced: false, allow: [] } })
  )
  t.is(late.code, 9, 'somebody was faster')
  t.is(JSON.parse(late.stderr).error.code, 'CONFLICT')
})

test('an admin renames a member and changes its tier; everybody sees it', async (t) => {
  const mesh = await localMesh(t)
  const [a, b] = await mesh.meshOf('a', 'b')
  t.is((await a.cli(['peers', 'rename', 'b', 'renamed'])).code, 0)
  await untilPeer(a, 'renamed', 'online')
  t.is((await a.cli(['peers', 'tier', 'renamed', 'L3'])).code, 0)
  const shown = await a.json<{ tier: string; name: string }>(['peers', 'show', 'renamed'])
  t.alike({ tier: shown.tier, name: shown.name }, { tier: 'L3', name: 'renamed' })
  await untilTrue(async () => (await b.api.call('node.status', {})).node.tier === 'L3', 'b knows its tier')
  // Its agents fall with it: L3 may not open to L0 without a justification.
  const refused = await b.cli(['call', 'host@a', 'host.report', '{}', '--json'])
  t.is(refused.code, 5)
  t.is(JSON.parse(refused.stderr).error.code, 'ESCALATION_REQUIRED')
  t.is((await b.cli(['call', 'host@a', 'host.report', '{}', '--justification', 'a test'])).code, 0)
  t.is((await b.cli(['peers', 'rename', 'a', 'mine'])).code, 5, 'a member may not')
})
