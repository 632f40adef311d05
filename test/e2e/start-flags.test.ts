import { once } from 'node:events'
import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import net from 'node:net'
import path from 'node:path'
import test from 'brittle'
import { connect } from '../../src/client.js'
import type { StatusInfo } from '../../src/ports/node-api.js'
import { type Ran, spawned } from '../cli/command-line.js'
import { testMesh, until } from '../support/nodes.js'
import { tempDir, type Teardown } from '../support/tmp.js'

/** A home whose node is started by `start --detach` in a process of its own, and stopped when the test ends. */
async function detachedHome(t: Teardown, env: Readonly<Record<string, string>> = {}) {
  const home = path.join(await tempDir(t), 'home')
  const cli = (args: readonly string[], stdin?: string): Promise<Ran> =>
    spawned(args, { home, env, ...(stdin === undefined ? {} : { stdin }) })
  t.teardown(async () => void (await cli(['stop'])))
  const start = (args: readonly string[] = [], stdin?: string): Promise<Ran> =>
    cli(['start', '--detach', '--json', ...args], stdin)
  const kept = async (): Promise<unknown> => {
    const { flags } = JSON.parse(await readFile(path.join(home, 'start.flags'), 'utf8')) as { flags: unknown }
    return flags
  }
  const status = async (): Promise<StatusInfo> => JSON.parse((await cli(['status', '--json'])).stdout) as StatusInfo
  return { home, cli, start, kept, status }
}

async function settingsOf(home: Awaited<ReturnType<typeof detachedHome>>) {
  const { settings, remembered } = JSON.parse((await home.cli(['config', 'show', '--json'])).stdout) as {
    settings: { key: string; value: unknown; source: string }[]
    remembered: Record<string, string[]>
  }
  return { remembered, of: (key: string) => settings.find((one) => one.key === key) }
}

test('the founder of a private mesh comes back by a start without flags, and its member is linked again', async (t) => {
  const { port } = await testMesh(t)
  const [founder, member] = [await detachedHome(t), await detachedHome(t)]
  const agents = await tempDir(t)
  const served = `127.0.0.1:${port}`
  const first = await founder.start([
    '--network',
    'private',
    '--serve-bootstrap',
    served,
    '--http',
    '127.0.0.1:0',
    '--agents',
    agents
  ])
  t.is(first.code, 0, first.stderr)
  const code = (await founder.cli(['invite', '--mine'])).stdout.trim()
  t.is((await member.start(['--name', 'member', '--join', '-'], code)).code, 0)
  const isLinked = (): Promise<unknown> =>
    until(connect({ home: founder.home }), 'peers.list', {}, ({ peers }) =>
      peers.some((one) => one.status === 'online')
    )
  await isLinked()
  for (const one of [member, founder]) t.is((await one.cli(['stop'])).code, 0)
  const again = await founder.start()
  t.is(again.code, 0, again.stderr)
  t.ok(
    again.stderr.includes(
      `with flags of the last start: --network private --serve-bootstrap ${served} --agents ${agents}`
    ),
    again.stderr
  )
  t.is((await member.start()).code, 0)
  await isLinked()
  const { network, http } = await founder.status()
  t.alike([network, http === null], ['private', false])
  const { of, remembered } = await settingsOf(founder)
  t.alike(remembered['--serve-bootstrap'], [served])
  const origins = ['network.kind', 'network.serveBootstrap', 'http.listen', 'agents.dirs', 'log.level'].map(
    (key) => of(key)?.source
  )
  t.alike(origins, ['remembered', 'remembered', 'remembered', 'remembered', 'default'])
  t.alike(of('agents.dirs')?.value, [agents])
  for (const home of [founder.home, member.home])
    for (const file of (await readdir(home)).filter((name) => name.startsWith('start.')))
      t.absent((await readFile(path.join(home, file), 'utf8')).includes(code), `no invite code in ${file}`)
})

test('wrong flags change no remembered flag, and missing or damaged values do not stop a node', async (t) => {
  const { port } = await testMesh(t)
  const node = await detachedHome(t, { A2A_NODE_LOCAL_PORT: String(port) })
  const agents = path.join(await tempDir(t), 'agents')
  await mkdir(agents)
  const forgets = await node.start(['--network', 'local', '--no-http'])
  t.ok(forgets.stderr.includes('--no-http forgets nothing: no --http is remembered'), forgets.stderr)
  await node.cli(['stop'])
  await node.start(['--http', '0', '--agents', agents])
  const good = { '--network': ['local'], '--agents': [agents], '--http': ['0'] }
  t.alike(await node.kept(), good)
  t.is((await stat(path.join(node.home, 'start.flags'))).mode & 0o777, 0o600)
  const idle = await node.start(['--agents', agents, '--no-http'])
  t.ok(idle.stderr.includes('--no-http is not applied: the node runs already'), idle.stderr)
  await node.cli(['stop'])
  for (const wrong of [
    ['--http', 'x:y'],
    ['--http', '70000'],
    ['--serve-bootstrap', 'x'],
    ['--bootstrap', 'h:1']
  ])
    t.is((await node.start(wrong)).code, 2, wrong.join(' '))
  t.alike(await node.kept(), good)
  await rm(agents, { recursive: true })
  t.is((await node.start()).code, 0)
  t.ok((await node.status()).problems.some(({ message }) => message.includes(`${agents}: there is no such directory`)))
  await node.cli(['stop'])
  await writeFile(path.join(node.home, 'start.flags'), '{"version":1,"flags":{"--htt')
  const damaged = await node.start()
  t.is(damaged.code, 0)
  t.ok(damaged.stderr.includes('start.flags is damaged: give the flags to start again'), damaged.stderr)
  const { problems, network } = await node.status()
  t.ok(problems.some(({ code, message }) => code === 'STORE_DAMAGED' && message.includes('start.flags is damaged')))
  t.is(network, 'local', 'the home has the network of its mesh by itself')
})

test('the next step of a failed first start keeps its flags, so that it founds no mesh on another network', async (t) => {
  const { port } = await testMesh(t)
  const blocker = net.createServer().listen(0, '127.0.0.1')
  await once(blocker, 'listening')
  t.teardown(() => blocker.close())
  const taken = String((blocker.address() as net.AddressInfo).port)
  const served = `127.0.0.1:${port}`
  const agents = await tempDir(t)
  const errorOf = ({ stderr }: Ran): { code: string; next: string[] } =>
    (JSON.parse(stderr.trim().split('\n').at(-1) ?? '') as { error: { code: string; next: string[] } }).error
  for (const [wrong, code] of [
    [['--network', 'private', '--http', taken], 'PORT_IN_USE'],
    [['--http', '0'], 'USAGE']
  ] as const) {
    const node = await detachedHome(t)
    const failed = await node.start([...wrong, '--serve-bootstrap', served, '--agents', agents, '--name', 'one'])
    const error = errorOf(failed)
    t.is(error.code, code, failed.stderr)
    const again = await node.cli([...(error.next[0] ?? '').split(' ').slice(1), '--detach'])
    t.is(again.code, 0, `${error.next[0]}: ${again.stderr}`)
    const { network, node: own } = await node.status()
    t.alike([network, own?.name], ['private', 'one'])
    t.alike(await node.kept(), {
      '--network': ['private'],
      '--serve-bootstrap': [served],
      '--agents': [agents],
      '--http': ['0']
    })
    await node.cli(['stop'])
  }
})

test('a remembered port that another program took is an error whose next step starts the node', async (t) => {
  const { port } = await testMesh(t)
  const node = await detachedHome(t, { A2A_NODE_LOCAL_PORT: String(port) })
  const blocker = net.createServer().listen(0, '127.0.0.1')
  await once(blocker, 'listening')
  t.teardown(() => blocker.close())
  const taken = String((blocker.address() as net.AddressInfo).port)
  t.is((await node.start(['--network', 'local'])).code, 0)
  await node.cli(['stop'])
  await writeFile(path.join(node.home, 'start.flags'), JSON.stringify({ version: 1, flags: { '--http': [taken] } }))
  const failed = await node.start()
  const { code, next } = (
    JSON.parse(failed.stderr.trim().split('\n').at(-1) ?? '') as { error: { code: string; next: string[] } }
  ).error
  t.is(code, 'PORT_IN_USE')
  t.ok(
    next.some((step) => step.endsWith('start --no-http --detach')),
    next.join('\n')
  )
  t.alike(await node.kept(), { '--http': [taken] }, 'a start that failed forgets nothing')
  t.is((await node.start(['--no-http'])).code, 0)
  t.is((await node.status()).http, null)
  await t.exception(node.kept(), 'nothing is remembered, so there is no file')
})

test('a backup has the remembered flags, and a home with a new identity has none', async (t) => {
  const { port } = await testMesh(t)
  const env = { A2A_NODE_LOCAL_PORT: String(port) }
  const [node, restored] = [await detachedHome(t, env), await detachedHome(t, env)]
  await node.start(['--network', 'local', '--http', '0'])
  await node.cli(['stop'])
  const file = path.join(await tempDir(t), 'node.backup')
  t.is((await node.cli(['backup', file])).code, 0)
  const restore = await restored.cli(['restore', file])
  t.is(restore.code, 0, restore.stderr)
  t.alike(await restored.kept(), { '--network': ['local'], '--http': ['0'] })
  const renewed = await node.cli(['doctor', '--new-identity', '--yes', '--force'])
  t.is(renewed.code, 0, renewed.stderr)
  await t.exception(node.kept(), 'a new node must not serve the addresses of the former one')
})
