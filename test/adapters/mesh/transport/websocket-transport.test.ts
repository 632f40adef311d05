import test from 'brittle'
import { WebSocket } from 'ws'
import { keyToText, type NodeId } from '../../../../src/kit/ids.js'
import { ManualClock } from '../../../support/manual-clock.js'
import { streamTransportContract } from '../../../contracts/stream-transport.js'
import { webSocketWorld } from './websocket-world.js'

streamTransportContract('WebSocket transport', async (t) => webSocketWorld(t), { findsPeers: false })

test('a stranger that never speaks is cut, more than 32 of them wait nowhere, and a member still gets in', async (t) => {
  const clock = new ManualClock()
  const open = webSocketWorld(t)
  const server = await open({ clock })
  await server.transport.listen()
  const sockets = await Promise.all(Array.from({ length: 40 }, () => silent(server.url)))
  await Promise.all(sockets.slice(32).map(({ closed }) => closed))
  t.is(sockets.filter(({ socket }) => socket.readyState === WebSocket.OPEN).length, 32)
  clock.advance(10_000)
  await Promise.all(sockets.map(({ closed }) => closed))
  const seen = new Promise<NodeId>((resolve) =>
    server.transport.onStream((stream) => {
      stream.on('error', () => {})
      resolve(keyToText(stream.remotePublicKey))
    })
  )
  const member = await open()
  member.transport.onStream((stream) => void stream.on('error', () => {}))
  member.transport.dial(server.id)
  t.is(await seen, member.id)
})

test('no other path and no plain request gets anything from the server', async (t) => {
  const server = await webSocketWorld(t)()
  const url = new URL(server.url)
  url.protocol = 'http:'
  t.is((await fetch(url)).status, 426)
  for (const path of ['/', '/mesh2', '/other']) t.is(await refusal(new URL(path, server.url).href), 404)
  t.is(await refusal(server.url), 503, 'before it listens')
})

async function silent(url: string): Promise<{ socket: WebSocket; closed: Promise<void> }> {
  const socket = new WebSocket(url)
  socket.on('error', () => {})
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  await new Promise((resolve) => socket.once('open', resolve))
  return { socket, closed }
}

function refusal(url: string): Promise<number | undefined> {
  return new Promise((resolve) => {
    const socket = new WebSocket(url)
    socket.on('error', () => {})
    socket.once('unexpected-response', (_request, response) => {
      resolve(response.statusCode)
      socket.terminate()
    })
  })
}
