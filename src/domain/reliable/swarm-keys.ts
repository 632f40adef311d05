import { padded } from './keys.js'

/** Ledger keys of swarms. Ids of swarms have no slash. */
export const SWARM_KEYS = {
  /** Its spec and its end. */
  head: (id: string): string => `swarm/${id}`,
  /** Present until it has ended. */
  open: (id: string): string => `swarm-open/${id}`,
  /** The swarm of an idempotency key, by the name of the key. */
  key: (name: string): string => `swarm-key/${name}`,
  task: (taskId: string): string => `swarm-task/${taskId}`,
  /** An item's name and input. */
  item: (id: string, index: number): string => `swarm-item/${id}/${padded(index)}`,
  /** The last lease of an item. */
  lease: (id: string, index: number): string => `swarm-lease/${id}/${padded(index)}`,
  /** The one outcome of an item. */
  result: (id: string, index: number): string => `swarm-result/${id}/${padded(index)}`,
  /** The record of this node as its participant. */
  seat: (id: string): string => `swarm-seat/${id}`,
  /** The last grant of this node. */
  vote: (id: string): string => `swarm-vote/${id}`,
  /** The record of this node under an index. */
  record: (id: string, index: number): string => `swarm-record/${id}/${padded(index)}`,
  /** The content of a record that is not the outcome of an item. */
  note: (id: string, index: number): string => `swarm-note/${id}/${padded(index)}`,
  /** Present while this node has a request to cancel it. */
  cancel: (id: string): string => `swarm-cancel/${id}`,
  /** When all of it may go. */
  expiry: (expiresAt: number, id: string): string => `swarm-expiry/${padded(expiresAt)}/${id}`
} as const

/** A range of keys, from the first and up to, but without, the last. */
interface Keys {
  readonly from: string
  readonly to: string
}

/** Kinds of keys of a swarm with an index. */
export const SWARM_KINDS = ['swarm-result', 'swarm-item', 'swarm-lease', 'swarm-record', 'swarm-note'] as const

/** The range of the keys of one kind of a swarm. */
export function rangeOfSwarm(kind: (typeof SWARM_KINDS)[number], id: string): Keys {
  // The character after the slash.
  return { from: `${kind}/${id}/`, to: `${kind}/${id}0` }
}

/** The range of swarms that may go by a time, that time included. */
export function expiredSwarms(time: number): Keys {
  return { from: 'swarm-expiry/', to: `swarm-expiry/${padded(time + 1)}` }
}

/** The range of keys that begin with one. */
export function beginningWith(key: string): Keys {
  // The character after every one in ids.
  return { from: key, to: `${key}~` }
}

/** The last part of a key: an id, or an index. */
export function lastPart(key: string): string {
  return key.slice(key.lastIndexOf('/') + 1)
}
