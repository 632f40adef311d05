import { inviteFor, untilPeer, untilTrue } from '../bench/nodes.mjs'
import { openInternet } from './internet.mjs'
import { startOn } from './nodes.mjs'

/** The longest time until both sides see each other online, in seconds. */
const GOAL_S = 10
const PORT = 7421
/** TCP passes where UDP is blocked, and is preferred. */
const NO_TCP = { A2A_NODE_TCP_LISTEN: 'off' }

/** A newcomer whose UDP packets are dropped joins by the WebSocket of the founder, which is open to all. */
export async function figures(lab, say) {
  const net = await openInternet(lab)
  const [open, blocked] = [net.host('open'), net.host('preserving')]
  blocked.blockUdp(true)
  const founder = await startOn(lab, {
    net,
    host: open,
    name: 'a',
    args: ['--websocket', `0.0.0.0:${PORT}`],
    env: NO_TCP
  })
  const join = await inviteFor(founder)
  const from = performance.now()
  const via = `ws://${open.address}:${PORT}`
  const newcomer = await startOn(lab, { net, host: blocked, name: 'b', join, args: ['--via', via], env: NO_TCP })
  const at = Math.max(...(await Promise.all([untilPeer(founder, 'b', 'online'), untilPeer(newcomer, 'a', 'online')])))
  const path = await pathTo(newcomer, 'a')
  say(`linked by ${path}`)
  blocked.blockUdp(false)
  const openedAt = performance.now()
  const movedAt = await untilTrue(async () => (await pathTo(newcomer, 'a')) === 'direct', 'the link moves to UDP')
  return [
    { name: 'join with UDP blocked, by WebSocket', unit: 's', goal: GOAL_S, samples: [(at - from) / 1000] },
    { name: 'links by another path than WebSocket', unit: '', goal: 0, samples: [path === 'websocket' ? 0 : 1] },
    {
      name: 'UDP passes again, until the link is direct',
      unit: 's',
      goal: null,
      samples: [(movedAt - openedAt) / 1000]
    }
  ]
}

async function pathTo(node, name) {
  const { peers } = await node.api.call('peers.list', {})
  return peers.find((one) => one.name === name)?.path
}
