import test from 'brittle'
import { freePort } from '../support/nodes.js'
import { cutNetwork } from '../support/websocket-network.js'

test('an invite names the WebSocket URLs of the node', async (t) => {
  const net = await cutNetwork(t)
  const a = await net.start('a', net.serving, undefined, 'https://a.example,ws://10.0.0.5:7421')
  const urls = ['wss://a.example/mesh', 'ws://10.0.0.5:7421/mesh']
  const invited = await a.cli(['invite', '--guest'])
  t.ok(invited.stderr.includes(`Where UDP does not pass, add --via ${urls.join(',')}`), invited.stderr)
  t.alike((await a.json(['invite', '--guest']))['websocketUrls'], urls)
})

test('URLs without a WebSocket are a problem in status, and no invite names them', async (t) => {
  const net = await cutNetwork(t)
  const a = await net.start('a', net.dark, undefined, 'wss://a.example')
  const { stdout } = await a.cli(['status'])
  t.ok(stdout.includes('websocket.urls names URLs, but this node serves no WebSocket'), stdout)
  t.alike((await a.json(['invite', '--guest']))['websocketUrls'], [])
})

test('a join by a wrong URL names the URL and the cause', async (t) => {
  const net = await cutNetwork(t)
  const a = await net.start('a', net.serving)
  const { code } = await a.api.call('invite.create', { trust: 'guest' })
  const dead = `ws://127.0.0.1:${await freePort()}`
  const words = ['--home', await net.mesh.dir(), 'start', '--join', code, '--via', dead, '--timeout', '3s']
  const { code: exit, stderr } = await net.mesh.run(words, { env: { A2A_NODE_NETWORK_KIND: 'private' } })
  t.is(exit, 6, stderr)
  t.ok(stderr.includes(`no member is reached by WebSocket at ${dead}/mesh: connect ECONNREFUSED`), stderr)
  t.ok(stderr.includes('[WEBSOCKET_OFFLINE]'), stderr)
  const wrong = await net.mesh.run(['--home', await net.mesh.dir(), 'start', '--via', 'ftp://x'])
  t.is(wrong.code, 2, wrong.stderr)
  t.ok(wrong.stderr.includes('a list of wss:// or ws:// URLs'), wrong.stderr)
})
