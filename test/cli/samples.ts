import type { DocumentDetail, DocumentReading, DocumentType } from '../../src/ports/document-api.js'
import type { AgentDetail, TaskInfo } from '../../src/ports/node-api.js'
import type { PeerDetail } from '../../src/ports/peer-api.js'
import type { SwarmEvent, SwarmInfo } from '../../src/ports/swarm-api.js'

const AT = '2026-01-02T03:04:05.000Z'
const OWNER = { id: 'y'.repeat(52), name: 'laptop' }

/** A peer; online and L1 unless told otherwise. */
export function peer(name: string, more: Partial<PeerDetail> = {}): PeerDetail {
  const seen = {
    status: 'online',
    path: 'direct',
    rttMs: 12.4,
    agents: ['host', 'text'],
    lastSeenAt: AT,
    problem: null,
    trust: 'mine'
  } as const
  const role = {
    self: false,
    admin: false,
    writer: false,
    owner: false,
    sandboxId: null,
    issuer: OWNER,
    version: 'a2a-node/0.1.0',
    documents: { bytes: 0, snapshotBytes: 0, maxBytes: 268_435_456, maxDocuments: 256, leftOut: 0 },
    revoked: null
  }
  return { id: `x4m1${'n'.repeat(44)}77be`, name, tier: 'L1', ...seen, ...role, ...more }
}

/** An agent with one capability. */
export function agent(id: string, node: string, more: Partial<AgentDetail> = {}): AgentDetail {
  const capability = { id: `${id}.stats`, name: id, description: 'Counts.', inputSchema: {}, outputSchema: {} }
  return {
    id,
    address: `${id}@${node}`,
    node: { id: `x4m1${'n'.repeat(44)}77be`, name: node },
    tier: 'L1',
    origin: node === 'laptop' ? 'local' : 'remote',
    sandboxId: null,
    labels: [],
    capabilities: [capability],
    prompts: [],
    revision: 1,
    status: 'ready',
    name: id,
    version: '1.0.0',
    description: 'Does things.',
    source: null,
    ...more
  }
}

/** A task that is done. */
export function task(id: string, more: Partial<TaskInfo> = {}): TaskInfo {
  const what = {
    kind: 'request',
    role: 'caller',
    agent: 'text@gpu-box',
    capability: 'text.stats',
    state: 'completed',
    waitingFor: null
  } as const
  return { id, ...what, attempt: 1, createdAt: AT, updatedAt: AT, result: { words: 2 }, error: null, ...more }
}

/** The events of a swarm of two items on two nodes. */
export function swarmEvents(status: 'completed' | 'partial' | 'failed' | 'canceled' = 'completed'): SwarmEvent[] {
  const error =
    status === 'completed'
      ? null
      : ({ code: 'TASK_FAILED', message: 'exit code 3', retryable: false, next: [] } as const)
  return [
    {
      type: 'swarm',
      id: 'swarm_fake',
      agents: ['text@laptop', 'text@gpu-box'],
      stages: [],
      leftOut: [{ agent: 'text@phone', rule: 'tier: L1 may open to L0, L1' }]
    },
    { type: 'lease', item: 'a.txt', agent: 'text@laptop', attempt: 1 },
    { type: 'lease', item: 'b.txt', agent: 'text@gpu-box', attempt: 1 },
    {
      type: 'item',
      item: 'a.txt',
      agent: 'text@laptop',
      attempt: 1,
      status: 'completed',
      result: { words: 1 },
      error: null
    },
    { type: 'released', item: 'b.txt', agent: 'text@gpu-box', attempt: 1, reason: 'the node is offline' },
    { type: 'lease', item: 'b.txt', agent: 'text@laptop', attempt: 2 },
    {
      type: 'item',
      item: 'b.txt',
      agent: 'text@laptop',
      attempt: 2,
      status: error === null ? 'completed' : 'failed',
      result: null,
      error
    },
    { type: 'left-out', agent: 'text@cage', rule: 'policy.yaml:3: deny', code: 'POLICY_DENIED' },
    {
      type: 'done',
      id: 'swarm_fake',
      status,
      counts: { total: 2, completed: error === null ? 2 : 1, failed: error === null ? 0 : 1 },
      durationMs: 4200,
      error: null
    }
  ]
}

/** What `swarm ls` has of it. */
export function swarm(status: SwarmInfo['status'] = 'completed'): SwarmInfo {
  const what = {
    goal: 'count words',
    capability: 'text.stats',
    strategy: 'map',
    stages: [],
    participants: ['text@laptop'],
    leftOut: []
  } as const
  return {
    id: 'swarm_fake',
    status,
    ...what,
    counts: { total: 2, completed: 2, failed: 0 },
    running: 0,
    waitingForApproval: 0,
    createdAt: AT,
    deadlineAt: AT,
    durationMs: 4200,
    error: null
  }
}

/** What is read of a part of the document `notes`. */
export function readingOf(type: DocumentType, value: unknown): DocumentReading {
  return { id: 'n'.repeat(52), name: 'notes', type, root: type, value }
}

/** A document that everybody may write, and nobody wrote. */
export function documentDetail(name: string): DocumentDetail {
  const may = { write: true, restrict: true }
  const size = { bytes: 0, blocks: 0, writers: 0, following: true }
  return { id: 'n'.repeat(52), name, creator: OWNER, createdAt: AT, may, access: null, streams: [], ...size }
}
