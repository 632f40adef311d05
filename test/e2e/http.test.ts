import { once } from 'node:events'
import fs from 'node:fs/promises'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import type { StatusInfo } from '../../src/ports/node-api.js'
import { localMesh, untilTrue } from '../support/nodes.js'

interface Made {
  readonly schema: string
  readonly id: string
  readonly token: string
}

async function get(url: string, token?: string): Promise<{ status: number; body: unknown }> {
  const headers: Record<string, string> =
    token === undefined ? { connection: 'close' } : { connection: 'close', authorization: `Bearer ${token}` }
  const response = await fetch(url, { headers })
  return { status: response.status, body: await response.json() }
}

function codeOf({ body }: { body: unknown }): string {
  return (body as { error: { code: string } }).error.code
}

/** A port that somebody else listens on until the test ends. */
async function takenPort(t: Assert): Promise<number> {
  const server = net.createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return (server.address() as net.AddressInfo).port
}

test('start --http 0 serves on a free port that it names; a token opens it until it is revoked, and refusals are on record', async (t) => {
  const mesh = await localMesh(t)
  const a = await mesh.start('a', { args: ['--http', '0'] })
  const url = a.info.http ?? ''
  t.ok(/^http:\/\/127\.0\.0\.1:[1-9]\d*$/.test(url), url)
  t.is((await a.api.call('node.status', {})).http, url)
  t.alike(await get(`${url}/health`), { status: 200, body: { status: 'ok' } })
  t.is(codeOf(await get(`${url}/nothing`)), 'UNAUTHORIZED')
  const made = await a.json<Made>(['a2a', 'token', 'create', '--name', 'test'])
  t.is(made.schema, 'a2a-node/token@1')
  t.alike(
    [(await get(`${url}/nothing`, made.token)).status, codeOf(await get(`${url}/nothing`, made.token))],
    [404, 'NOT_FOUND']
  )
  const kept = await fs.readFile(path.join(a.home, 'tokens.json'), 'utf8')
  t.absent(kept.includes(made.token.slice(4)), 'the token is not in the home')
  t.is((await fs.stat(path.join(a.home, 'tokens.json'))).mode & 0o777, 0o600)
  t.is((await a.cli(['a2a', 'token', 'revoke', made.id])).code, 0)
  t.is((await get(`${url}/nothing`, made.token)).status, 401)
  for (let i = 0; i < 200; i++) await get(`${url}/nothing`, `a2a_${i}`)
  const audit = path.join(a.home, 'audit', 'audit.ndjson')
  const isThere = async (): Promise<boolean> => {
    const text = await fs.readFile(audit, 'utf8')
    return ['"rule":"http-token"', '"code":"token-created"', '"code":"token-revoked"'].every((part) =>
      text.includes(part)
    )
  }
  await untilTrue(isThere, 'refusals, creation and revocation are in the audit log')
  const lines = (await fs.readFile(audit, 'utf8')).split('\n').filter((line) => line.includes('"rule":"http-token"'))
  t.ok(lines.length <= 12, `a flood of refusals is ${lines.length} lines`)
  t.absent((await fs.readFile(audit, 'utf8')).includes(made.token.slice(4)))
  t.absent(a.errors().includes(made.token.slice(4)))
  await a.stop()
  await t.exception.all(get(`${url}/health`))
})

test('a token survives a restart and stays out of a backup', async (t) => {
  const mesh = await localMesh(t)
  const a = await mesh.start('a', { args: ['--http', '0'] })
  const { token, id } = await a.json<Made>(['a2a', 'token', 'create'])
  const file = path.join(await mesh.dir(), 'a.backup')
  t.is((await a.cli(['backup', file])).code, 0)
  await a.stop()
  const again = await mesh.start('a', { home: a.home, args: ['--http', '0'] })
  t.is((await get(`${again.info.http}/nothing`, token)).status, 404)
  t.is((await again.json<{ tokens: { id: string }[] }>(['a2a', 'token', 'ls'])).tokens[0]?.id, id)
  await again.stop()
  const home = path.join(await mesh.dir(), 'restored')
  t.is((await mesh.run(['--home', home, 'restore', file])).code, 0)
  const restored = await mesh.start('a', { home, args: ['--http', '0'] })
  t.is((await get(`${restored.info.http}/nothing`, token)).status, 401, 'entries revoked since would come back to life')
})

test('a port that is taken is PORT_IN_USE, exit 9, and leaves a home as it was; without --http there is none', async (t) => {
  const mesh = await localMesh(t)
  const port = await takenPort(t)
  const home = path.join(await mesh.dir(), 'a')
  const ran = await mesh.run(['--home', home, 'start', '--http', String(port)])
  t.is(ran.code, 9)
  t.ok(ran.stderr.includes('[PORT_IN_USE]') && ran.stderr.includes('start --http 0'), ran.stderr)
  await t.exception(fs.stat(path.join(home, 'mesh.json')), /ENOENT/)
  const a = await mesh.start('a', { home })
  t.is(a.info.http, null)
  t.is((await a.json<{ http: null }>(['status'])).http, null)
})

test('--detach serves HTTP too, says where, and a second start reports a port that it does not apply', async (t) => {
  const mesh = await localMesh(t)
  const home = path.join(await mesh.dir(), 'a')
  const ran = await mesh.run(['--home', home, 'start', '--detach', '--json', '--http', '127.0.0.1:0'])
  t.teardown(async () => void (await mesh.run(['--home', home, 'stop'])), { order: -1 })
  t.is(ran.code, 0, ran.stderr)
  const { http } = JSON.parse(ran.stdout) as { http: string }
  t.is((await get(`${http}/health`)).status, 200)
  const text = await mesh.run(['--home', home, 'start', '--http', '0'])
  t.ok(text.stdout.includes(`  http      ${http}  (token: a2a-node --home ${home} a2a token create)\n`), text.stdout)
  t.is(text.stderr, '')
  const other = await mesh.run(['--home', home, 'start', '--http', '1'])
  t.ok(other.stderr.includes('--http is not applied: the node runs already'), other.stderr)
})

test('the config and the environment set the address of HTTP; an invalid one is refused before anything starts', async (t) => {
  const mesh = await localMesh(t)
  const home = path.join(await mesh.dir(), 'a')
  await fs.mkdir(home, { mode: 0o700 })
  await fs.writeFile(path.join(home, 'config.yaml'), 'http:\n  listen: 0\n  hosts: [box.lan]\n')
  const a = await mesh.start('a', { home })
  const port = Number(new URL(a.info.http ?? '').port)
  const socket = net.connect(port, '127.0.0.1').setEncoding('utf8')
  socket.write(`GET /health HTTP/1.1\r\nHost: box.lan:${port}\r\nConnection: close\r\n\r\n`)
  t.ok((await socket.toArray()).join('').startsWith('HTTP/1.1 200 '))
  await a.stop()
  for (const text of ['70000', 'x:y', '127.0.0.1', ':1', '-1', '1:2:3', 'http://localhost:1']) {
    const ran = await mesh.run(['--home', home, 'start', '--http', text])
    t.is(ran.code, 2, `--http ${text}`)
    t.ok(ran.stderr.includes('--http'), ran.stderr)
    t.is((await mesh.run(['--home', home, 'config', 'check'], { env: { A2A_NODE_HTTP_LISTEN: text } })).code, 78, text)
  }
})

test('beyond this machine it listens only at configured addresses, and reports them', async (t) => {
  const mesh = await localMesh(t)
  const a = await mesh.start('a', { args: ['--http', '0.0.0.0:0'] })
  t.ok(/^http:\/\/0\.0\.0\.0:\d+$/.test(a.info.http ?? ''), a.info.http ?? '')
  const { http, problems } = await a.json<StatusInfo>(['status'])
  t.is(http, a.info.http)
  const [problem] = problems
  const port = new URL(http ?? '').port
  t.is(problem?.code, 'HTTP_EXPOSED')
  t.ok(problem?.message.includes(`at 0.0.0.0:${port}`) && problem.message.includes('127.0.0.1'), problem?.message)
  t.ok(problem?.next.endsWith(`start --http ${port}`), problem?.next)
  for (const words of [['start'], ['status'], ['doctor']]) {
    const { stdout } = await a.cli(words)
    t.ok(stdout.includes(`0.0.0.0:${port}`) && stdout.includes('HTTP_EXPOSED'), stdout)
    t.absent(stdout.includes(`//127.0.0.1:${port}`), stdout)
  }
  const other = await a.cli(['start', '--http', `127.0.0.1:${port}`])
  t.ok(other.stderr.includes('--http is not applied'), other.stderr)
  t.absent((await a.cli(['start', '--http', `0.0.0.0:${port}`])).stderr.includes('not applied'))
  t.ok(a.errors().includes('HTTP is served beyond this machine'), a.errors())
  t.ok(a.errors().includes('agent cards name 127.0.0.1') && a.errors().includes('set http.publicUrl'), a.errors())
  t.is((await get(`${a.info.http}/nothing`)).status, 401)
  await a.stop()
  const named = await mesh.start('a', {
    home: a.home,
    args: ['--http', '0.0.0.0:0'],
    env: { A2A_NODE_HTTP_PUBLIC_URL: 'http://10.0.0.5:8421' }
  })
  t.ok(named.errors().includes('HTTP is served beyond this machine'), named.errors())
  t.absent(named.errors().includes('agent cards name 127.0.0.1'), named.errors())
  t.alike((await named.json<StatusInfo>(['status'])).problems, [], 'a public URL means it')
  await named.stop()
  const hasIPv6 = Object.values(os.networkInterfaces())
    .flat()
    .some((one) => one?.address === '::1')
  const six = hasIPv6 ? ['[::]', '[::ffff:0.0.0.0]', '[::ffff:127.0.0.1]', '[::1]'] : []
  for (const host of [...six, '127.0.0.2']) {
    const bound = await mesh.start('a', { home: a.home, args: ['--http', `${host}:0`] })
    const shown = new URL(bound.info.http ?? '').hostname
    t.is(shown, host === '[::ffff:0.0.0.0]' ? '0.0.0.0' : host.replace('[::ffff:127.0.0.1]', '127.0.0.1'))
    const codes = (await bound.json<StatusInfo>(['status'])).problems.map(({ code }) => code)
    t.alike(codes, ['[::]', '0.0.0.0'].includes(shown) ? ['HTTP_EXPOSED'] : [], host)
    await bound.stop()
  }
})
