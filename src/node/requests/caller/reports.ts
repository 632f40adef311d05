import type { NodeId } from '../../../kit/ids.js'
import type { ReportedApproval } from '../../../domain/channel/control.js'
import { ApprovalWait, type AwaitedApproval, type ReportedWait } from './approval-wait.js'
import type { StrayRuns } from './cancel-queue.js'
import { LivenessTimer } from './delivery.js'
import type { RequestOutcome } from './outcome.js'
import type { RequestIndex } from './peer-queue.js'
import type { RequestDeps, RequestMaking } from './request-codec.js'

/** One request by the reports of its peer: is it there, and does it wait for a person? */
export class ReportedRequest {
  readonly liveness: LivenessTimer
  readonly approvalWait: ApprovalWait
  readonly #making: RequestMaking
  readonly #outcome: RequestOutcome
  readonly #onApprovalOver: () => void

  /** `onApprovalOver`: its peer reports that it waits for a person no longer. */
  constructor(
    { clock, limits }: Pick<RequestDeps, 'clock' | 'limits'>,
    making: RequestMaking,
    parts: { readonly outcome: RequestOutcome; readonly onApprovalOver: () => void }
  ) {
    this.liveness = new LivenessTimer(clock, limits.leaseMs)
    this.approvalWait = new ApprovalWait(clock, limits.leaseMs)
    this.#making = making
    this.#outcome = parts.outcome
    this.#onApprovalOver = parts.onApprovalOver
  }

  /** Its peer must report it from now on, as after an acknowledgement; otherwise it is sent again. */
  tend(): void {
    this.liveness.onHeartbeat()
  }

  /** Its peer reports it. */
  receive(reported: ReportedWait): void {
    const approval = typeof reported === 'object' ? reported : null
    const wasWaiting = this.approvalWait.isWaiting
    this.liveness.onHeartbeat()
    if (approval === null) this.approvalWait.over()
    else this.approvalWait.reported(approval)
    if (wasWaiting && approval === null && this.#outcome.isAwaited) this.#onApprovalOver()
    const waitingFor = typeof reported === 'string' ? reported : reported && 'approval'
    this.#outcome.note((tasks, id) => tasks.waitFor(id, waitingFor))
    if (waitingFor === null) this.#outcome.note((tasks, id) => tasks.working(id))
  }

  /** Its wait for a person at its peer, by the last report; null: it waits for none, or no caller waits. */
  get awaitedApproval(): AwaitedApproval | null {
    const { asking, names } = this.#making
    const { present } = this.approvalWait
    if (present === null || !this.#outcome.isAwaited) return null
    const { target, capability, lease } = asking
    return { target, capability, taskId: names.taskId, swarm: lease?.swarm ?? null, ...present }
  }
}

/** Passes the reports of peers to the requests of this node that they name. */
export class PeerReports {
  readonly #index: Pick<RequestIndex, 'of' | 'all'>
  readonly #strays: Pick<StrayRuns, 'look'>

  constructor(index: Pick<RequestIndex, 'of' | 'all'>, strays: Pick<StrayRuns, 'look'>) {
    this.#index = index
    this.#strays = strays
  }

  /** A peer reports its requests, and the ones that wait for a free slot of their agent. */
  onHeartbeat(peer: NodeId, keys: readonly string[], waiting: readonly string[] = []): void {
    const idle = new Set(waiting)
    this.#receive(peer, keys, (key) => (idle.has(key) ? 'slot' : null))
  }

  /** A peer reports the requests that wait for a person there; `approvals` in the order of the keys. */
  onApproval(peer: NodeId, keys: readonly string[], approvals: readonly ReportedApproval[] = []): void {
    const byKey = new Map(keys.map((key, at) => [key, approvals[at]]))
    this.#receive(peer, keys, (key) => ({ approval: byKey.get(key) ?? null }))
  }

  /** The requests that wait for a person, by the reports of their nodes. */
  awaitingApproval(): AwaitedApproval[] {
    return this.#index.all().flatMap((request) => request.reported.awaitedApproval ?? [])
  }

  #receive(peer: NodeId, keys: readonly string[], waitsFor: (key: string) => ReportedWait): void {
    const named = new Set(keys)
    for (const { sending, reported } of this.#index.of(peer))
      if (named.delete(sending.key)) reported.receive(waitsFor(sending.key))
    if (named.size > 0) void this.#strays.look(peer, named)
  }
}
