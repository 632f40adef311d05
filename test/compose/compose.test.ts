import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import { openControl } from '../../src/adapters/control/client.js'
import { openNodeStore } from '../../src/adapters/storage/home/node-store.js'
import { checkAgentFile, runAgentFile, type RunningNode, startNode } from '../../src/compose/compose.js'
import { impostorScene } from '../adapters/mesh/links/impostor.js'
import { failsWith } from '../support/fails.js'
import { apiOf, localNodes as world } from '../support/local-nodes.js'
import { freePort, until } from '../support/nodes.js'
import { tempDir } from '../support/tmp.js'

async function invite(node: RunningNode, uses = 1): Promise<string> {
  return (await apiOf(node).call('invite.create', { trust: 'mine', uses })).code
}

async function exists(file: string): Promise<boolean> {
  return fs.stat(file).then(
    () => true,
    () => false
  )
}

test('a node founds a mesh, serves its API, and leaves neither socket nor pid file behind', async (t) => {
  const { start, homeOf } = await world(t)
  const node = await start('a', { name: 'laptop' })
  const home = homeOf('a')
  t.alike([node.info.node.name, node.info.node.tier, node.info.socket], ['laptop', 'L0', home.socket])
  const status = await apiOf(node).call('node.status', {})
  t.alike([status.state, status.network, status.mesh.members], ['running', 'local', 1])
  t.ok(await exists(home.socket))
  await Promise.all([node.close(), node.close()])
  t.is(await node.stopped, null)
  t.alike(await Promise.all([exists(home.socket), exists(path.join(home.run, 'node.pid'))]), [false, false])
})

test('a home keeps its key, its mesh and its name', async (t) => {
  const { start } = await world(t)
  const first = await start('a', { name: 'laptop' })
  await first.close()
  const second = await start('a')
  t.alike(second.info.node, first.info.node)
  t.alike(second.info.mesh, first.info.mesh)
})

test('asking it to stop stops it', async (t) => {
  const { start } = await world(t)
  const node = await start('a')
  await apiOf(node).call('node.stop', {})
  t.is(await node.stopped, null)
})

test('a second node on one home is ALREADY_RUNNING, and the first goes on', async (t) => {
  const { start } = await world(t)
  const node = await start('a')
  await failsWith(t, 'ALREADY_RUNNING', () => start('a'))
  t.is((await apiOf(node).call('node.status', {})).state, 'running')
})

test('an invalid name is refused, with the offending character, and the home can be used', async (t) => {
  const { start, homeOf, optionsOf } = await world(t)
  for (const name of ['', ' \t ', '\u0007\u202e', 'x'.repeat(65), 'bo\u3164ss', 'b\u043ess']) {
    const error = await failsWith(t, 'USAGE', () => start('a', { name }))
    t.ok(error.message.includes('1 to 64 characters'))
  }
  const options = await optionsOf('a', {})
  const config = { ...options.config, node: { ...options.config.node, name: '\u0007' } }
  await failsWith(t, 'CONFIG_INVALID', () => startNode({ ...options, config }))
  t.absent(await exists(homeOf('a').socket))
  const error = await failsWith(t, 'USAGE', () => start('a', { name: ' lap\u001btop\n' }))
  t.ok(error.message.includes('U+001B at character 4'), error.message)
  t.alike(error.next, ['a2a-node start --name laptop'])
  t.is((await start('a', { name: ' laptop\n' })).info.node.name, 'laptop')
})

test('a join that fails leaves a home as it was; the same code lets it in later, by the same key', async (t) => {
  const { start, homeOf } = await world(t)
  const founder = await start('founder')
  const code = await invite(founder)
  await failsWith(t, 'INVITE_INVALID', () => start('b', { join: 'hello' }))
  t.absent(await exists(homeOf('b').home), 'a garbled code makes no home')
  await founder.close()
  await failsWith(t, 'NO_ADMIN_ONLINE', () =>
    start('b', { name: 'was-b', join: code, settings: { 'network.joinTimeoutMs': 500 } })
  )
  const { epoch, ...rest } = (await openNodeStore(homeOf('b').home).read<Record<string, unknown>>('node')) ?? {}
  t.is(epoch, 2)
  t.alike(rest, {}, 'neither the name nor the network of that try')

  const again = await start('founder')
  const node = await start('b', { name: 'b', join: code })
  t.is(node.info.mesh.id, again.info.mesh.id)
  t.is(node.info.node.name, 'b')
})

test('a join that an impostor answered leaves a home as it was and the refusal on record; the same code lets it in later', async (t) => {
  const { lab, owner, member, code, impostor } = await impostorScene(t, { isOwner: true })
  const { start, homeOf } = await world(t)
  const settings = { 'network.kind': 'private' }
  const error = await failsWith(t, 'INVITE_INVALID', () => start('b', { name: 'was-b', join: code, settings }))
  t.is(impostor.answered.length, 1)
  const { home } = homeOf('b')
  const store = openNodeStore(home)
  t.alike(await store.read('node'), { epoch: 2 }, 'neither the name nor the network of that try')
  t.absent(await store.read('mesh'))
  const lines = await fs.readFile(path.join(home, 'audit', 'audit.ndjson'), 'utf8')
  t.ok(lines.includes(error.message) && lines.includes('"rule":"pairing"'), lines)

  await member.close()
  const back = await lab.reopen(owner)
  await back.start()
  const node = await start('b', { name: 'b', join: code, settings })
  t.alike([node.info.mesh.id, node.info.node.id], [back.mesh.meshId, impostor.answered[0]])
})

test('after a join that failed a plain start founds a mesh of its own', async (t) => {
  const { start } = await world(t)
  const founder = await start('founder')
  const code = await invite(founder)
  await founder.close()
  await failsWith(t, 'NO_ADMIN_ONLINE', () => start('b', { join: code, settings: { 'network.joinTimeoutMs': 500 } }))
  const node = await start('b', { name: 'alone' })
  t.is(node.info.node.tier, 'L0')
  t.not(node.info.mesh.id, founder.info.mesh.id)
})

test('joining with a home that is in a mesh is ALREADY_IN_MESH, and the mesh stays', async (t) => {
  const { start } = await world(t)
  const [founder, other] = [await start('founder'), await start('other')]
  const code = await invite(founder)
  await other.close()
  await failsWith(t, 'ALREADY_IN_MESH', () => start('other', { join: code }))
  t.is((await start('other')).info.mesh.id, other.info.mesh.id)
})

test('nodes of one mesh see each other; a revoked one stops by itself, says why, and does not start again', async (t) => {
  const { start } = await world(t)
  const founder = await start('founder')
  const node = await start('b', { name: 'b', join: await invite(founder) })
  await until(apiOf(founder), 'peers.list', {}, ({ peers }) => peers.some((one) => one.status === 'online'))
  await apiOf(founder).call('peers.revoke', { peer: 'b' })
  t.is((await node.stopped)?.code, 'REVOKED')
  await failsWith(t, 'REVOKED', () => start('b'))
})

test('a port that is in use for a served bootstrap leaves nothing running', async (t) => {
  const { start, homeOf } = await world(t)
  const address = `127.0.0.1:${await freePort()}`
  const settings = { 'network.kind': 'private', 'network.serveBootstrap': address, 'network.bootstrap': [address] }
  const node = await start('a', { settings })
  await failsWith(t, 'PORT_IN_USE', () => start('b', { settings }))
  t.absent(await exists(path.join(homeOf('b').run, 'node.pid')))
  await node.close()
  t.is((await start('b', { settings })).info.node.tier, 'L0')
})

test('an agent file is checked and run without a node', async (t) => {
  const file = path.join(await tempDir(t), 'greeter.md')
  await fs.writeFile(
    file,
    [
      '---',
      'name: greeter',
      'description: Says hello.',
      'a2a:',
      '  capabilities:',
      '    - { id: greet, description: Says hello, input: { type: object } }',
      '  runtime: { type: command, command: [echo, "hello {input.name}"] }',
      '---',
      ''
    ].join('\n')
  )
  t.is((await checkAgentFile(file)).id, 'greeter')
  const outcome = await runAgentFile(file, null, { input: { name: 'you' } })
  t.is(outcome.ok && String(outcome.result).trim(), 'hello you')
})

test('an MCP client that leaves before the MCP server is loaded is counted as gone', async (t) => {
  const { optionsOf, homeOf } = await world(t)
  const counts: number[] = []
  let [onNone, isOver] = [(): void => {}, false]
  const none = new Promise<void>((resolve) => (onNone = resolve))
  const onMcpClients = (count: number): void => {
    counts.push(count)
    if (count === 0) onNone()
  }
  const node = await startNode({ ...(await optionsOf('a', {})), onMcpClients })
  t.teardown(() => node.close())
  void node.stopped.then(() => (isOver = true))
  const stream = await openControl(homeOf('a').socket, 'mcp')
  stream.destroy()
  await none
  t.alike([counts, isOver], [[1, 0], false], 'while the node runs')
})
