import { bytesToText, type NodeId, utf8 } from '../../kit/ids.js'
import type { Hash } from '../../kit/sign.js'

/**
 * Milliseconds of its own monotonic clock for which a coordinator may coordinate after it sent the requests that a
 * majority granted.
 */
export const COORDINATOR_LEASE_MS = 5000
/**
 * Milliseconds after a grant without another one, by the participant's monotonic clock. Longer than the coordinator's
 * lease: the grant outlives it while the rate of each clock is at most 5 % off.
 */
export const VOTER_LEASE_MS = 5600
/** Milliseconds after which a coordinator renews its lease and unanswered messages are repeated. */
export const COORDINATION_PERIOD_MS = 1000
/** Additional milliseconds before each further participant in the order of takeover stands. */
export const TAKEOVER_STEP_MS = 1000
/** Milliseconds without candidacy after a participant could not read or settle accepted records. */
export const UNABLE_MS = 60_000
/** Leases of one item that one coordinator numbers before the numbers of the next begin. */
const LEASES_AN_EPOCH = 1000
/** Epochs after which the numbers of leases start again: messages bound them. */
const NUMBERED_EPOCHS = 999

/** Number before the first lease of an epoch's coordinator, so that no two leases of an item have one number. */
export function leasesFrom(epoch: number): number {
  return (Math.max(0, epoch - 1) % NUMBERED_EPOCHS) * LEASES_AN_EPOCH
}

/** Which lease of an item one of a coordinator is among those that the same coordinator gave, from 1 on; 0 for none. */
export function leaseInEpoch(number: number): number {
  return number === 0 ? 0 : ((number - 1) % LEASES_AN_EPOCH) + 1
}

/** Participants of a swarm that vote, the launcher among them. */
export const MAX_VOTERS = 64

/** The participants of one swarm: written at its launch, never changed. */
export interface Coordination {
  readonly swarm: string
  readonly itemCount: number
  /** Index of the record that ends the swarm, which covers every record before it. Absent: there is none. */
  readonly endIndex?: number
  /** The voters in the order of takeover: the launcher first. */
  readonly voters: readonly NodeId[]
  /** False (`--no-takeover`): only the launcher ever coordinates. */
  readonly mayTakeOver: boolean
}

/** The recorded outcome of an item. */
export interface ItemRecord {
  /** Of the coordinator that had it recorded last. */
  readonly epoch: number
  /** Identifies the outcome: a hash of its row. */
  readonly digest: string
}

/**
 * Makes the participants of a swarm from its launcher and the nodes of the agents offered at its launch. The order of
 * takeover follows a hash of swarm and node, so no node is first for all swarms. Of more than {@link MAX_VOTERS} the
 * first in that order vote.
 */
export function coordinationOf(
  { launcher, nodes, ...rest }: { launcher: NodeId; nodes: readonly NodeId[] } & Omit<Coordination, 'voters'>,
  hash: Hash
): Coordination {
  const others = [...new Set(nodes)].filter((node) => node !== launcher)
  const placed = others.map((node) => ({ node, place: bytesToText(hash(utf8(rest.swarm), utf8(node))) }))
  const ordered = placed.sort((a, b) => (a.place < b.place ? -1 : 1)).map(({ node }) => node)
  return { ...rest, voters: [launcher, ...ordered].slice(0, MAX_VOTERS) }
}

/** Identifies the voters of a swarm. */
export function votersDigest(voters: readonly NodeId[], hash: Hash): string {
  return bytesToText(hash(utf8(voters.join(' '))).subarray(0, 20))
}

/** How many participants are a majority. */
export function majorityOf({ voters }: Pick<Coordination, 'voters'>): number {
  return Math.floor(voters.length / 2) + 1
}

/** May a node ever coordinate? */
export function isCandidate({ voters, mayTakeOver }: Coordination, node: NodeId): boolean {
  return mayTakeOver ? voters.includes(node) : voters[0] === node
}

/**
 * Adds the records of another participant: of two records of one item the higher epoch counts. One epoch has one
 * coordinator, which records one outcome of an item, so records of the same epoch are the same.
 */
export function mergeRecords(into: Map<number, ItemRecord>, records: Iterable<readonly [number, ItemRecord]>): void {
  for (const [index, record] of records) {
    const known = into.get(index)
    if (known === undefined || record.epoch > known.epoch) into.set(index, record)
  }
}

/**
 * The records without an end that was never accepted: one of a lower epoch than another record. A coordinator records
 * an accepted end in its own epoch before any other record. So a record of a higher epoch proves that the end was not
 * accepted.
 */
export function withoutStaleEnd(
  records: ReadonlyMap<number, ItemRecord>,
  endIndex: number | undefined
): ReadonlyMap<number, ItemRecord> {
  const end = endIndex === undefined ? undefined : records.get(endIndex)
  const isStale = end !== undefined && [...records.values()].some(({ epoch }) => epoch > end.epoch)
  return isStale ? new Map([...records].filter(([index]) => index !== endIndex)) : records
}
