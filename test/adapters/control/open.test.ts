import { mkdtempSync, rmSync } from 'node:fs'
import net from 'node:net'
import { once } from 'node:events'
import os from 'node:os'
import path from 'node:path'
import type { Duplex } from 'node:stream'
import test, { type Assert } from 'brittle'
import { openControl } from '../../../src/adapters/control/client.js'
import type { ControlRefusal } from '../../../src/adapters/control/guard.js'
import { type ControlServer, startControlServer } from '../../../src/adapters/control/server.js'
import type { Principal } from '../../../src/ports/node-api.js'
import { codeOf } from '../../contracts/node-api.js'
import { FakeNodeApi } from '../../contracts/node-api-fake.js'

interface Served {
  readonly socket: string
  readonly server: ControlServer
  readonly refusals: ControlRefusal[]
  readonly principals: Principal[]
}

/** A control server whose protocol `echo` gives back every byte. */
async function serve(t: Assert): Promise<Served> {
  const dir = mkdtempSync(path.join(os.tmpdir(), 'control-'))
  t.teardown(() => rmSync(dir, { recursive: true, force: true }), { order: 10 })
  const socket = path.join(dir, 'run', 'control.sock')
  const refusals: ControlRefusal[] = []
  const principals: Principal[] = []
  const server = await startControlServer({
    path: socket,
    tier: () => 1,
    apiFor: () => new FakeNodeApi({}),
    onRefusal: (one) => refusals.push(one),
    protocols: {
      echo: (stream, principal) => {
        principals.push(principal)
        stream.pipe(stream)
      }
    }
  })
  t.teardown(() => server.close())
  return { socket, server, refusals, principals }
}

async function read(stream: Duplex, bytes: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  while (size < bytes) {
    const chunk = (await once(stream, 'data')) as [Buffer]
    chunks.push(chunk[0])
    size += chunk[0].length
  }
  return Buffer.concat(chunks)
}

/** Sends raw bytes, gives what comes back first. */
async function raw(socket: string, text: string): Promise<string> {
  const connection = net.connect(socket)
  connection.on('error', () => {})
  connection.write(text)
  const [chunk] = (await once(connection, 'data')) as [Buffer]
  connection.destroy()
  return chunk.toString()
}

function upgrade(lines: readonly string[], body = ''): string {
  return ['POST /v0/open/echo HTTP/1.1', 'host: a2a-node', 'content-type: application/json', ...lines, '', body].join(
    '\r\n'
  )
}

test('a stream carries bytes both ways, as the operator, until either side ends it', async (t: Assert) => {
  const { socket, principals } = await serve(t)
  const stream = await openControl(socket, 'echo')
  const bytes = Buffer.alloc(300_000, 'é')
  stream.write(bytes)
  t.ok((await read(stream, bytes.length)).equals(bytes))
  t.alike(
    principals.map(({ kind, tier }) => [kind, tier]),
    [['operator', 1]]
  )
  const closed = once(stream, 'close')
  stream.end()
  await closed
})

test('a server that closes ends its streams, and takes no others', async (t: Assert) => {
  const { socket, server } = await serve(t)
  const stream = await openControl(socket, 'echo')
  stream.on('error', () => {})
  const closed = once(stream, 'close')
  await server.close()
  await closed
  t.is(await codeOf(openControl(socket, 'echo')), 'NODE_NOT_RUNNING')
})

test('bytes sent with the request are the first of the stream', async (t: Assert) => {
  const { socket } = await serve(t)
  const head = 'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n'
  const connection = net.connect(socket)
  connection.write(upgrade(['connection: upgrade', 'upgrade: echo'], 'hello'))
  t.is(String(await read(connection, head.length + 5)), `${head}hello`)
  connection.destroy()
})

test('a protocol that is not there, and one that is asked for under another name, are refused', async (t: Assert) => {
  const { socket } = await serve(t)
  t.is(await codeOf(openControl(socket, 'nothing')), 'USAGE')
  t.is(await codeOf(openControl(socket, '__proto__')), 'USAGE')
  t.ok((await raw(socket, upgrade(['connection: upgrade', 'upgrade: websocket']))).startsWith('HTTP/1.1 400 '))
})

test('a web page opens no stream', async (t: Assert) => {
  const { socket, refusals, principals } = await serve(t)
  const wrong = ['origin: http://localhost', 'sec-fetch-mode: websocket', 'host: localhost']
  for (const header of wrong) {
    t.ok((await raw(socket, upgrade([header, 'connection: upgrade', 'upgrade: echo']))).startsWith('HTTP/1.1 403 '))
  }
  t.alike(
    refusals.map(({ rule }) => rule),
    ['origin', 'sec-fetch', 'host']
  )
  t.is(principals.length, 0)
})

test('a stream with terms is of a program that reads and sends, never above the operator', async (t: Assert) => {
  const { socket, principals } = await serve(t)
  const terms = { name: 'claude', tier: 0, sandboxId: 'ci', agents: ['text'] } as const
  const weak = { ...terms, tier: 3, sandboxId: null, agents: null } as const
  for (const one of [terms, weak, { ...weak, tools: ['text.*', 'git@beta.*'] } as const])
    (await openControl(socket, 'echo', { terms: one })).destroy()
  const common = { kind: 'mcp', name: 'program claude', scopes: ['read', 'send'] }
  t.alike(principals, [
    { ...common, tier: 1, sandboxId: 'ci', agents: ['text'] },
    { ...common, tier: 3, sandboxId: null },
    { ...common, tier: 3, sandboxId: null, tools: ['text.*', 'git@beta.*'] }
  ])
})

test('malformed terms open no stream, and never one of the operator', async (t: Assert) => {
  const { socket, principals } = await serve(t)
  const terms = { name: 'claude', tier: 1, sandboxId: null, agents: null }
  const wrong = [
    '',
    '{',
    'null',
    '[]',
    '{}',
    JSON.stringify({ ...terms, tier: 4 }),
    JSON.stringify({ ...terms, agents: [] })
  ]
  const more = [
    { ...terms, scopes: ['admin'] },
    { ...terms, name: 'a b' },
    { ...terms, sandboxId: '../x' },
    { ...terms, agents: 'text' },
    { ...terms, tools: [] },
    { ...terms, tools: ['a b'] }
  ]
  for (const text of [...wrong, ...more.map((one) => JSON.stringify(one))]) {
    const request = upgrade(['connection: upgrade', 'upgrade: echo']).replace(
      '/echo ',
      `/echo?caller=${encodeURIComponent(text)} `
    )
    t.ok((await raw(socket, request)).startsWith('HTTP/1.1 400 '), text)
  }
  t.alike(principals, [])
})
