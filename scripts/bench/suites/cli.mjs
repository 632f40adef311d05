import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { BIN, openLab } from '../lab.mjs'
import { median } from '../figures.mjs'
import { localMesh } from '../nodes.mjs'

/** Pairs for each run: one takes 0.2 s. */
const PAIRS = 4

/** `a2a-node peers` against the start of Node itself, in pairs; the first answer of `mcp serve` to a new client. */
export async function figures({ runs }) {
  const lab = openLab()
  try {
    const [node] = await localMesh(lab, ['a', 'b'])
    const peers = () => timeOf([BIN, '--home', node.home, 'peers'])
    const nothing = () => timeOf(['-e', '0'])
    peers()
    nothing()
    const pairs = Array.from({ length: runs * PAIRS }, (_none, index) => {
      const first = index % 2 === 0 ? nothing() : null
      const ours = peers()
      return { ours, bare: first ?? nothing() }
    })
    const ratios = pairs.map(({ ours, bare }) => ours / bare)
    const bare = median(pairs.map((one) => one.bare)).toFixed(0)
    return [
      {
        name: '`a2a-node peers` / `node -e 0`',
        unit: 'x',
        goal: 2.5,
        samples: ratios,
        note: `median of \`node -e 0\`: ${bare} ms`
      },
      { name: '`a2a-node peers`', unit: 'ms', goal: null, samples: pairs.map(({ ours }) => ours) },
      await answers('with a node', 150, { runs, homeOf: () => node.home }),
      await answers('without', 1500, { runs, homeOf: () => lab.dir() })
    ]
  } finally {
    await lab.close()
  }
}

function timeOf(args) {
  const start = performance.now()
  const { status, stderr } = spawnSync(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  if (status !== 0) throw new Error(`node ${args.join(' ')} exited with ${String(status)}: ${stderr.toString()}`)
  return performance.now() - start
}

/** From the start of the process to the answer to its handshake, as many times as there are pairs. */
async function answers(where, goal, { runs, homeOf }) {
  const samples = []
  for (let run = 0; run <= runs * PAIRS; run++) samples.push(await answerMs(homeOf()))
  // The first one fills the caches.
  return { name: `first answer of \`mcp serve\`, ${where}`, unit: 'ms', goal, samples: samples.slice(1) }
}

async function answerMs(home) {
  const start = performance.now()
  const child = spawn(process.execPath, [BIN, 'mcp', 'serve', '--home', home, '--no-start'], {
    stdio: ['pipe', 'pipe', 'inherit']
  })
  const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'bench', version: '1' } }
  child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params })}\n`)
  await once(child.stdout, 'data')
  const ms = performance.now() - start
  const ended = once(child, 'exit')
  child.stdin.end()
  await ended
  return ms
}
