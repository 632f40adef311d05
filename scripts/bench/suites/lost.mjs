import { openLab } from '../lab.mjs'
import { allOnline, inTurn, localMesh, startNode, untilPeer } from '../nodes.mjs'

/** How long after SIGKILL or SIGSTOP of a node the founder shows it offline. */
export async function figures({ runs }) {
  const lab = openLab()
  try {
    const nodes = await localMesh(lab, ['a', ...Array.from({ length: runs }, (_none, index) => `p${index}`)])
    const stopped = await hit(nodes, 'SIGSTOP')
    for (const { process: child } of nodes) child.kill('SIGCONT')
    await allOnline(nodes)
    const killed = await hit(nodes, 'SIGKILL')
    const back = await inTurn(nodes.slice(1, 2), ({ home, name, env }) => startNode(lab, { home, name, env }))
    const again = await Promise.all(
      back.map(async (node) => (await untilPeer(nodes[0], node.name, 'online')) - node.spawnedAt)
    )
    return [
      { name: 'killed peer shown offline (SIGKILL)', unit: 's', goal: 8, statistic: 'worst', samples: killed },
      { name: 'stopped peer shown offline (SIGSTOP)', unit: 's', goal: 8, statistic: 'worst', samples: stopped },
      { name: 'killed peer started again to online', unit: 's', goal: null, samples: again.map((ms) => ms / 1000) }
    ]
  } finally {
    await lab.close()
  }
}

/** Sends the signal to every node but the founder, a little apart; the seconds each took to be shown offline. */
async function hit([founder, ...victims], signal) {
  const waits = victims.map((one) => untilPeer(founder, one.name, 'offline'))
  const sent = await inTurn(victims, async (one) => {
    // Apart from each other, so that the samples see different phases of the keep-alive.
    await new Promise((resolve) => setTimeout(resolve, 300))
    one.kill(signal)
    return performance.now()
  })
  return (await Promise.all(waits)).map((at, index) => (at - sent[index]) / 1000)
}
