import fs from 'node:fs/promises'
import path from 'node:path'
import { asNodeError, NodeError } from '../kit/errors.js'
import type { HomePaths } from '../config/paths.js'
import type { NodeStore } from '../ports/storage.js'
import type { MeshState } from '../adapters/mesh/network/mesh-node.js'
import { damagedDocuments, mendDocuments } from '../adapters/storage/home/node-store.js'
import { freshEpoch, type StoredRecord } from '../compose/node-record.js'

/** One thing that was repaired. */
export interface Repair {
  readonly name: string
  /** The repair that was done. */
  readonly text: string
  /** Data that is or may be lost by it; null for none. */
  readonly lost: string | null
}

/** Moves a file or directory out of the way, and keeps it; nothing when there is none. */
export type Aside = (file: string) => Promise<void>

/** A document that is begun anew once both of its files are damaged. */
interface Replaceable {
  /** Data that is lost then; null: the node makes it again by itself. */
  readonly lost: string | null
  /** A document that goes with it. */
  readonly also?: string
}

const MADE_AGAIN: Replaceable = { lost: null }
const NETWORK =
  'which network the node is in: it is that of the settings, unless the next start names it (a2a-node start --network <kind>)'

const REPLACEABLE: Readonly<Record<string, Replaceable>> = {
  cards: MADE_AGAIN,
  audited: MADE_AGAIN,
  ledger: MADE_AGAIN,
  'clock-skew': MADE_AGAIN,
  core: MADE_AGAIN,
  addresses: MADE_AGAIN,
  'log-marks': MADE_AGAIN,
  'log-cores': MADE_AGAIN,
  seed: MADE_AGAIN,
  documents: { lost: 'which documents are not followed: all of them are from now on' },
  'documents-arrived': MADE_AGAIN,
  'document-marks': MADE_AGAIN,
  'document-losses': MADE_AGAIN,
  'document-streams': MADE_AGAIN,
  'document-snapshots': MADE_AGAIN,
  'document-shares': MADE_AGAIN,
  'swarm-documents': MADE_AGAIN,
  node: { lost: NETWORK },
  tokens: { lost: 'all tokens: programs that call over HTTP need new ones' },
  'oauth-clients': { lost: 'the OAuth clients and all of their tokens: add the clients anew' },
  // Tokens that were revoked would count again: with the keys that signed them they do not.
  'oauth-state': { lost: 'the OAuth clients and all of their tokens: add the clients anew', also: 'oauth-clients' }
}

/** Is there a file or directory at a place? */
export async function isThere(place: string): Promise<boolean> {
  return await fs.stat(place).then(
    () => true,
    () => false
  )
}

/** Can the node go on without a document of its home? */
export function isReplaceable(name: string): boolean {
  return Object.hasOwn(REPLACEABLE, name)
}

/** The error of a home that lost what makes the node itself. */
export function beyondRepair(error: unknown): NodeError {
  const next = ['a2a-node restore <backup> --home <new directory>', 'a2a-node start --home <new directory> --join -']
  return new NodeError('STORE_DAMAGED', `${asNodeError(error).message}; without it this home cannot be the same node`, {
    next,
    cause: error
  })
}

/**
 * Repairs the documents of a home: a damaged file is rewritten from its whole twin; a document without a whole file is
 * moved aside.
 * @throws NodeError STORE_DAMAGED for the document of the mesh: then a backup helps
 */
export async function repairDocuments(home: HomePaths, documents: NodeStore, aside: Aside): Promise<Repair[]> {
  const state = await documents.read<MeshState>('mesh').catch((error: unknown) => Promise.reject(beyondRepair(error)))
  const mended = await mendDocuments(home.home)
  const repairs: Repair[] = mended.map(({ file }) => ({
    name: 'documents',
    text: `${path.basename(file)} was damaged and is made again from its copy`,
    lost: null
  }))
  const names = new Set((await damagedDocuments(home.home)).map(({ name }) => name))
  for (const name of names) {
    const { lost = null, also } = REPLACEABLE[name] ?? {}
    if (!isReplaceable(name)) continue
    for (const one of also === undefined ? [name] : [name, also]) await moveAside(home, one, aside)
    repairs.push({ name: 'documents', text: `${name}.json was damaged and is moved aside`, lost })
    if (name === 'node') await documents.write(name, recordAnew(state))
  }
  return repairs
}

async function moveAside({ home }: HomePaths, name: string, aside: Aside): Promise<void> {
  for (const ending of ['.json.copy', '.json']) await aside(path.join(home, name + ending))
}

/** The name is that of the certificate; the epoch is one that no mesh of this home had. */
function recordAnew(state: MeshState | null): StoredRecord {
  const name = state?.chain[0]?.body.name
  return { epoch: freshEpoch(), ...(name === undefined ? {} : { name }) }
}
