import fs from 'node:fs'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { openLab, ROOT } from '../lab.mjs'
import { inTurn, localMesh, times } from '../nodes.mjs'
import { runSwarm } from '../swarm-run.mjs'

/** What is still going on just after a start or a swarm may end for this long, in milliseconds. */
const SETTLE_MS = 2000
const KIB = 1024

/** Resident memory of each of three nodes, fresh and after swarms as in the demo; the largest of the three counts. */
export async function figures({ runs }) {
  if (!fs.existsSync('/proc/self/status')) {
    const note = 'skipped: resident memory is read from /proc, which this system lacks'
    return [{ name: 'resident memory of a node', unit: 'MB', goal: 120, samples: [], note }]
  }
  const meshes = await times(runs, measureMesh)
  return [
    { name: 'resident memory, freshly started', unit: 'MB', goal: 120, samples: meshes.map(({ fresh }) => fresh) },
    { name: 'resident memory, after the demo', unit: 'MB', goal: 160, samples: meshes.map(({ worked }) => worked) },
    { name: 'resident memory, peak', unit: 'MB', goal: null, samples: meshes.map(({ peak }) => peak) }
  ]
}

async function measureMesh() {
  const lab = openLab()
  try {
    const nodes = await localMesh(lab, ['laptop', 'gpu-box', 'phone'])
    await delay(SETTLE_MS)
    const fresh = largest(nodes, 'VmRSS')
    await demoSwarms(nodes[0])
    await delay(SETTLE_MS)
    return { fresh, worked: largest(nodes, 'VmRSS'), peak: largest(nodes, 'VmHWM') }
  } finally {
    await lab.close()
  }
}

/** A report of every node and a count of this repository's sources, their text attached. */
async function demoSwarms(node) {
  const items = sourceFiles().map((file) => ({
    item: path.relative(ROOT, file),
    input: { text: fs.readFileSync(file, 'utf8') }
  }))
  await inTurn(
    [
      { goal: 'report', capability: 'host.report', strategy: 'each' },
      { goal: 'count words', capability: 'text.stats', strategy: 'map', items }
    ],
    (request) => runSwarm(node, request)
  )
}

function sourceFiles() {
  const src = path.join(ROOT, 'src')
  return fs
    .readdirSync(src, { recursive: true })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => path.join(src, name))
}

/** The largest value of a line of /proc/<pid>/status, in MB (10^6 bytes). */
function largest(nodes, field) {
  return Math.max(
    ...nodes.map((node) => {
      const [, kib] = new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(
        fs.readFileSync(`/proc/${node.process.pid}/status`, 'utf8')
      )
      return (Number(kib) * KIB) / 1e6
    })
  )
}
