import test from 'brittle'
import { NodeError } from '../../../src/kit/errors.js'
import type { LinkPath } from '../../../src/ports/mesh.js'
import type { PeerExam } from '../../../src/ports/peer-api.js'
import { fakeHome } from '../command-line.js'
import { peer } from '../samples.js'

/** A home whose node pings `gpu-box` over these paths in turn, the last one again and again; null: it is offline. */
async function pinged(t: Parameters<typeof fakeHome>[0], ...paths: (LinkPath | null)[]) {
  let at = 0
  const calls = {
    'peers.ping': ({ peer: name }: { peer: string }) => {
      const path = paths[Math.min(at++, paths.length - 1)] ?? null
      if (path === null) throw new NodeError('PEER_OFFLINE', `${name} is offline`)
      return { peer: { id: 'x'.repeat(52), name }, path, rttMs: [2] }
    }
  }
  return { ...(await fakeHome(t, { calls })), asked: () => at }
}

test('ping --until-direct repeats until the path is direct, and says why it waits', async (t) => {
  const { run, asked } = await pinged(t, null, 'websocket', 'direct')
  const { code, stdout, stderr } = await run(['ping', 'gpu-box', '--until-direct'])
  t.alike([code, asked()], [0, 3], stderr)
  t.ok(stdout.startsWith('gpu-box (xxxx...xxxx), direct, 2'), stdout)
  t.ok(stderr.includes('not direct yet: gpu-box is offline\nnot direct yet: websocket\n'), stderr)
})

test('ping --until-direct ends with 6 at another path, and with the error of a peer that stays offline', async (t) => {
  const worse = await pinged(t, 'websocket')
  const { code, stdout, stderr } = await worse.run(['ping', 'gpu-box', '--until-direct', '--timeout', '1s', '--json'])
  t.is(code, 6, stderr)
  const { path, direct } = JSON.parse(stdout) as { path: string; direct: boolean }
  t.alike([path, direct], ['websocket', false])
  t.ok(stderr.includes('doctor gpu-box'), stderr)
  const offline = await pinged(t, null)
  const lost = await offline.run(['ping', 'gpu-box', '--until-direct', '--timeout', '1s'])
  t.is(lost.code, 7, lost.stderr)
  t.is((await offline.run(['ping', 'gpu-box', '--until-direct', '-c', '3'])).code, 2)
})

test('ping --until-direct of a peer that stays relayed ends with 6 and examines it next, also by a name with a space', async (t) => {
  const calls = {
    'peers.ping': () => {
      throw new NodeError('PEER_OFFLINE', 'it is reached by way of c (relayed)', { data: { path: 'relayed' } })
    }
  }
  const { run } = await fakeHome(t, { calls })
  const { code, stderr } = await run(['ping', 'my box', '--until-direct', '--timeout', '1s'])
  t.is(code, 6, stderr)
  t.ok(stderr.includes("doctor 'my box'"), stderr)
  const linked = await pinged(t, 'websocket')
  const other = await linked.run(['ping', 'my box', '--until-direct', '--timeout', '1s'])
  t.ok(other.stderr.includes("doctor 'my box'"), other.stderr)
})

test('doctor of a peer shows what was found, with the verdict in one sentence and its next step', async (t) => {
  const { run } = await fakeHome(t, { peers: [peer('gpu-box')] })
  const { code, stdout } = await run(['doctor', 'gpu-box'])
  t.is(code, 0, stdout)
  for (const line of ['  policy    its requests here: allow text; deny host', '  dht       its key is announced'])
    t.ok(stdout.includes(`${line}\n`), stdout)
  t.ok(/ok: gpu-box is linked directly\n {2}try: a2a-node .*ping gpu-box\n$/.test(stdout), stdout)
  const json = JSON.parse((await run(['doctor', 'gpu-box', '--json'])).stdout) as PeerExam & { schema: string }
  t.alike([json.schema, json.verdict.ok, json.sight?.isAnnounced], ['a2a-node/doctor-peer@1', true, true])
  t.is((await run(['doctor', 'gpu-box', '--repair'])).code, 2)
})

test('doctor of a peer without a running node says that none runs', async (t) => {
  const { run, close } = await fakeHome(t)
  await close()
  const { code, stderr } = await run(['doctor', 'gpu-box'])
  t.is(code, 3, stderr)
  t.ok(stderr.includes('[NODE_NOT_RUNNING]') && stderr.includes('start'), stderr)
})
