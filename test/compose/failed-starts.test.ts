import { once } from 'node:events'
import fs from 'node:fs/promises'
import net from 'node:net'
import path from 'node:path'
import test from 'brittle'
import { startNode } from '../../src/compose/compose.js'
import { resolveHome } from '../../src/config/paths.js'
import { failsWith } from '../support/fails.js'
import type { Start } from '../support/local-nodes.js'
import { localNodes } from '../support/local-nodes.js'
import { smallDisk } from '../support/small-disk.js'
import { type ErrorCode, NodeError } from '../../src/kit/errors.js'

/** Addresses that no machine of a test has (RFC 5737). */
const FOREIGN = '192.0.2.1'

async function busyPort(t: { teardown(fn: () => unknown): void }): Promise<number> {
  const server = net.createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return (server.address() as net.AddressInfo).port
}

test('a start that is refused before the node has a mesh leaves no home behind', async (t) => {
  const { start, homeOf } = await localNodes(t)
  const served = { 'network.kind': 'private', 'network.serveBootstrap': `${FOREIGN}:29737` }
  const port = await busyPort(t)
  const refused: Record<string, Start> = {
    'a bootstrap node of a local network': { settings: { 'network.serveBootstrap': '127.0.0.1:29737' } },
    'a bootstrap node on an address of another machine': { settings: served },
    'HTTP on a port in use': { settings: { 'http.listen': `127.0.0.1:${port}` } },
    'HTTP on an address of another machine': { settings: { 'http.listen': `${FOREIGN}:9000` } },
    'an invalid name': { name: 'x'.repeat(65) },
    'a broken code': { join: 'hello' }
  }
  for (const [title, how] of Object.entries(refused)) {
    const { home } = homeOf('fresh')
    for (const isThere of [false, true]) {
      if (isThere) await fs.mkdir(home, { mode: 0o700 })
      const error = await start('fresh', how).then(
        () => null,
        (one: unknown) => one
      )
      t.ok(error instanceof NodeError, `${title}: ${String(error)}`)
      const left = await fs.readdir(home).catch(() => null)
      t.alike(left, isThere ? [] : null, title)
    }
    await fs.rmdir(home)
  }
  t.is((await start('fresh')).info.mesh.name, 'home', 'the directory can be used')
})

test('a failed start keeps a home with anything of its owner, and one of a node', async (t) => {
  const { start, homeOf } = await localNodes(t)
  const settings = { 'http.listen': `127.0.0.1:${await busyPort(t)}` }
  const fails = async (name: string, code: ErrorCode = 'PORT_IN_USE'): Promise<void> =>
    void (await failsWith(t, code, () => start(name, { settings })))
  for (const file of ['policy.yaml', path.join('agents', 'mine.md'), 'notes.txt']) {
    const { home } = homeOf('owned')
    await fs.mkdir(path.dirname(path.join(home, file)), { recursive: true, mode: 0o700 })
    await fs.writeFile(path.join(home, file), 'rules: []\n')
    await fails('owned')
    t.is(await fs.readFile(path.join(home, file), 'utf8'), 'rules: []\n', file)
    await fs.rm(home, { recursive: true })
  }
  const node = await start('node')
  await node.close()
  await fails('node')
  const again = await start('node')
  t.is(again.info.node.id, node.info.node.id)
  await fails('node', 'ALREADY_RUNNING')
  t.ok(await fs.stat(homeOf('node').socket), 'nor that of a running node')
})

test('a first start on a full disk leaves no home behind, and the next one with space works', async (t) => {
  const disk = await smallDisk(t, 8)
  if (typeof disk === 'string') return t.comment(`skipped: ${disk}`)
  const { optionsOf } = await localNodes(t)
  const options = {
    ...(await optionsOf('full', {})),
    home: resolveHome({ home: path.join(disk.dir, 'home'), env: {} })
  }
  await disk.fill()
  // Enough for the first files, and for different ones.
  for (const kib of [0, 40, 100, 300]) {
    await disk.leave(kib * 1024)
    await failsWith(t, 'DISK_FULL', () => startNode(options))
    t.is(await fs.readdir(options.home.home).catch(() => null), null, `with ${kib} KiB`)
    await disk.fill()
  }
  await disk.free()
  const node = await startNode(options)
  t.is(node.info.mesh.name, 'home')
  await node.close()
})

test('a detached start that is refused leaves its log alone', async (t) => {
  const { start, homeOf } = await localNodes(t)
  const { home, logFile } = homeOf('logged')
  await fs.mkdir(home, { mode: 0o700 })
  await fs.writeFile(logFile, 'a line\n')
  await start('logged', { name: 'x'.repeat(65) }).catch(() => {})
  t.alike(await fs.readdir(home), [path.basename(logFile)])
})
