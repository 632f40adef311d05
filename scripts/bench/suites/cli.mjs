import { spawnSync } from 'node:child_process'
import { BIN, openLab } from '../lab.mjs'
import { median } from '../figures.mjs'
import { localMesh } from '../nodes.mjs'

/** Pairs for each run: one takes 0.2 s. */
const PAIRS = 4

/** `a2a-node peers` against the start of Node itself, in pairs. */
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
      { name: '`a2a-node peers`', unit: 'ms', goal: null, samples: pairs.map(({ ours }) => ours) }
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
