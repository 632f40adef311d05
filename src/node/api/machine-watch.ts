import type { ErrorCode } from '../../kit/errors.js'
import type { Unsubscribe } from '../../kit/events.js'
import type { NodeId } from '../../kit/ids.js'
import type { Principal } from '../../ports/node-api.js'
import type { ApprovalInfo, MachineApprovals } from '../../ports/policy-api.js'
import { listMachines, type MachineApprovalsDeps } from './machine-approvals.js'

/** Milliseconds between two looks at the other machines of the owner. */
export const MACHINES_MS = 5000
/**
 * The same for a machine that refuses, or cannot read, such calls: it records each one. One that comes back is asked.
 */
export const REFUSING_MS = 600_000

const REFUSALS: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'CAPABILITY_NOT_FOUND',
  'FORBIDDEN',
  'REVOKED',
  'SANDBOX_VIOLATION'
])

/**
 * Calls back with the pending approvals of the other machines of the owner, at first and when they differ; see
 * {@link listMachines} for whom. Looks every {@link MACHINES_MS} milliseconds.
 */
export function watchMachines(
  node: MachineApprovalsDeps,
  caller: Principal,
  listener: (machines: readonly MachineApprovals[]) => void
): Unsubscribe {
  const { clock } = node.deps
  const refusing = new Map<NodeId, { readonly row: MachineApprovals; readonly until: number }>()
  let [last, isLooking, isOver] = ['', false, false]
  const look = async (): Promise<void> => {
    const now = clock.monotonic()
    for (const [peer, { until }] of refusing) if (until <= now) refusing.delete(peer)
    const rows = await listMachines(node, caller, (peer) => refusing.get(peer)?.row ?? null)
    for (const row of rows) {
      const isNew = row.error !== null && REFUSALS.has(row.error.code) && !refusing.has(row.node.id)
      if (isNew) refusing.set(row.node.id, { row, until: now + REFUSING_MS })
    }
    const text = JSON.stringify(rows)
    if (isOver || text === last) return
    last = text
    listener(rows)
  }
  const tick = (): void => {
    if (isLooking) return
    isLooking = true
    void look().finally(() => (isLooking = false))
  }
  tick()
  const timer = clock.every(MACHINES_MS, tick)
  // It may run another build now, or regard this node otherwise.
  const stop = node.events.on(({ type, data }) => {
    if (type === 'peer') refusing.delete(data['id'] as NodeId)
  })
  return () => {
    isOver = true
    stop()
    clock.clear(timer)
  }
}

/** Calls back with each message that begins to wait for approval at another machine of the owner, also those of now. */
export function onNewElsewhere(
  node: MachineApprovalsDeps,
  caller: Principal,
  listener: (approval: ApprovalInfo) => void
): Unsubscribe {
  const known = new Map<NodeId, ReadonlySet<string>>()
  return watchMachines(node, caller, (machines) => {
    for (const { node: machine, approvals, error } of machines) {
      // A machine that is away for a while has the same ones afterwards.
      if (error !== null) continue
      const before = known.get(machine.id)
      known.set(machine.id, new Set(approvals.map(({ id }) => id)))
      for (const one of approvals) if (before?.has(one.id) !== true) listener(one)
    }
  })
}
