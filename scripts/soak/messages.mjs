import fs from 'node:fs'
import path from 'node:path'
import { freePort, openLab } from '../bench/lab.mjs'
import { localEnv } from '../bench/nodes.mjs'
import { openPeer } from '../bench/peers.mjs'
import { verdicts } from './verdicts.mjs'

/** Requests of one round, and how many are under way at once. */
const ROUND = 5000
const IN_FLIGHT = 64

/** Asks an agent of another process so many times, with what both ledgers keep of it; what their memory did. */
export async function soakMessages(count) {
  const lab = openLab()
  try {
    const port = await freePort()
    const env = localEnv(port)
    const processes = []
    const counted = { spawn: (...args) => processes[processes.push(lab.spawn(...args)) - 1] }
    const [callee, caller] = [openPeer(counted, env), openPeer(counted, env)]
    const home = path.join(lab.dir(), 'h')
    await caller({
      command: 'open',
      port,
      home,
      ...(await callee({ command: 'echo', port, home: path.join(lab.dir(), 'h') }))
    })
    const samples = processes.map(() => [])
    for (let done = 0; done < count; done += ROUND) {
      await caller({ command: 'requests', count: Math.min(ROUND, count - done), inFlight: IN_FLIGHT })
      for (const [at, { pid }] of processes.entries()) samples[at].push({ rssMB: rssOf(pid) })
    }
    return [...verdicts('callee', samples[0]), ...verdicts('caller', samples[1])]
  } finally {
    await lab.close()
  }
}

function rssOf(pid) {
  return Number(/VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1000
}
