import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import test from 'brittle'
import type { Assert } from 'brittle'
import { connect } from '../../src/client.js'
import type { NodeApi } from '../../src/ports/node-api.js'
import { untilTrue } from '../support/nodes.js'

interface Host {
  readonly through: readonly string[]
}

interface Started {
  readonly api: NodeApi
  stop(): Promise<void>
}

/** Starts a node of the public network on a host without internet. */
async function started(t: Assert, { through: [program = '', ...words] }: Host, home: string, more: readonly string[]) {
  const [bin, log] = [path.resolve('bin/a2a-node.js'), path.join(home, 'out')]
  fs.mkdirSync(home, { recursive: true })
  const out = fs.openSync(log, 'w')
  const args = [...words, process.execPath, bin, '--home', home, 'start', '--name', path.basename(home), ...more]
  const child: ChildProcess = spawn(program, args, { stdio: ['ignore', out, out] })
  const ended = once(child, 'exit')
  t.teardown(async () => {
    child.kill('SIGKILL')
    await ended
  })
  const api = connect({ home })
  const isUp = async (): Promise<boolean> => {
    if (child.exitCode !== null) throw new Error(fs.readFileSync(log, 'utf8'))
    return await api.call('node.status', {}).then(
      () => true,
      () => false
    )
  }
  await untilTrue(isUp, `${home} is up`)
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM')
    await ended
  }
  return { api, stop } satisfies Started
}

async function pathTo(api: NodeApi, name: string): Promise<string | null> {
  return (await api.call('peers.list', {})).peers.find((one) => one.name === name)?.path ?? null
}

interface Namespaces {
  /** Why there are none here; null: there are. */
  namespaceFault(): string | null
  openIsland(lab: { onClose(command: string, args: readonly string[]): void }, hosts: number): Host[]
}

const { namespaceFault, openIsland } = (await import(
  pathToFileURL(path.resolve('scripts/bench/netns.mjs')).href
)) as Namespaces
const fault = namespaceFault()

test(`two machines of one LAN without internet meet by mDNS: a newcomer with an invite, and members after a restart${fault === null ? '' : ` (skipped: ${fault})`}`, {
  skip: fault !== null
}, async (t) => {
  const lab = {
    onClose: (command: string, args: readonly string[]) => t.teardown(() => void spawnSync(command, args), { order: 1 })
  }
  const [left, right] = openIsland(lab, 2) as [Host, Host]
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'a2a-lan-'))
  t.teardown(() => fs.rmSync(dir, { recursive: true, force: true }), { order: 2 })
  const first = await started(t, left, path.join(dir, 'a'), [])
  const { code } = await first.api.call('invite.create', { trust: 'mine' })
  const joined = await started(t, right, path.join(dir, 'b'), ['--join', code])
  await untilTrue(async () => (await pathTo(joined.api, 'a')) === 'tcp', 'b is linked to a')
  await Promise.all([first.stop(), joined.stop()])
  for (const home of ['a', 'b'])
    for (const name of ['addresses', 'tcp-addresses'])
      for (const end of ['.json', '.json.copy']) fs.rmSync(path.join(dir, home, `${name}${end}`), { force: true })
  const [a, b] = await Promise.all([
    started(t, left, path.join(dir, 'a'), []),
    started(t, right, path.join(dir, 'b'), [])
  ])
  await untilTrue(
    async () => (await pathTo(b.api, 'a')) !== null && (await pathTo(a.api, 'b')) !== null,
    'they meet again'
  )
  t.is(await pathTo(a.api, 'b'), 'tcp')
})
