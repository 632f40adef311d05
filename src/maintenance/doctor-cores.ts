import { shortId } from '../kit/ids.js'
import { shown } from '../kit/text.js'
import type { NodeStore } from '../ports/storage.js'
import { CORE_CARE, leaveOut, readCare, type StoredCare } from '../adapters/mesh/log/core-care.js'
import type { MeshState } from '../adapters/mesh/network/mesh-node.js'
import type { Repair } from './doctor-documents.js'
import { type DoctorCheck, doubtful, good } from './doctor-check.js'

const REPAIR = 'a2a-node doctor --repair'

/** Checks the home's record of log cores that are set aside, or at which starts ended. */
export async function coresChecks(
  documents: NodeStore,
  { forked = [] }: Pick<MeshState, 'forked'>
): Promise<readonly DoctorCheck[]> {
  const care = await readCare(documents)
  const { failed, reading, leftOut, removed, setAside } = care
  const checks: DoctorCheck[] = []
  if (failed > 0) {
    const what =
      reading.length === 0 ? '' : `, the last one while it read new blocks of ${reading.map(nameIn(care)).join(', ')}`
    const text = `${failed === 1 ? 'the last start' : `the last ${failed} starts`} ended before the node was up${what}`
    checks.push(doubtful('cores', text, reading.length === 0 ? ['a2a-node start'] : ['a2a-node start', REPAIR]))
  }
  for (const core of leftOut)
    checks.push(
      setAsideCheck(
        care,
        core,
        'starts ended while it was read; the next start tries it again, and a repair leaves it out for good'
      )
    )
  for (const core of removed)
    checks.push(setAsideCheck(care, core, 'a repair left it out; another one has the next start read it again'))
  for (const [core, { reason }] of Object.entries(setAside)) checks.push(setAsideCheck(care, core, shown(reason)))
  for (const core of forked) checks.push(setAsideCheck(care, core, 'it has two different blocks at one index'))
  return checks.length === 0 ? [good('cores', 'no core of the mesh log is set aside')] : checks
}

function setAsideCheck(care: StoredCare, core: string, why: string): DoctorCheck {
  const owner = care.owners[core]
  const next = owner === undefined ? ['a2a-node start', 'a2a-node status'] : [`a2a-node peers revoke ${owner}`]
  const isLeftOut = care.leftOut.includes(core) || care.removed.includes(core)
  return doubtful('cores', `${nameIn(care)(core)} is set aside: ${why}`, isLeftOut ? [...next, REPAIR] : next)
}

function nameIn({ owners }: StoredCare): (core: string) => string {
  return (core) => {
    const owner = owners[core]
    return `the core ${shortId(core)}${owner === undefined ? '' : ` of ${shortId(owner)}`}`
  }
}

/**
 * Leaves out for good the cores at which starts ended, so that the next one comes up. Where there are none, those that
 * are left out for good are read again.
 */
export async function repairCores(documents: NodeStore, state: Pick<MeshState, 'key' | 'owner'>): Promise<Repair[]> {
  const care = await readCare(documents)
  const { leftOut } = leaveOut(care, state)
  if (leftOut.length > 0) {
    const removed = [...new Set([...care.removed, ...leftOut])]
    await documents.write(CORE_CARE, {
      ...care,
      failed: 0,
      reading: [],
      leftOut: [],
      suspects: [],
      removed
    } satisfies StoredCare)
    const text = `starts ended while ${leftOut.map(nameIn(care)).join(', ')} was read: its new blocks are left out from now on`
    return [{ name: 'cores', text, lost: null }]
  }
  if (care.failed > 0 || care.removed.length === 0) return []
  await documents.write(CORE_CARE, { ...care, removed: [] } satisfies StoredCare)
  return [
    { name: 'cores', text: `the next start reads ${care.removed.map(nameIn(care)).join(', ')} again`, lost: null }
  ]
}
