import { randomInt } from 'node:crypto'
import os from 'node:os'
import { NodeError } from '../kit/errors.js'
import { refuseName } from '../kit/names/refuse-name.js'
import { nameFault, NODE_NAME } from '../kit/names/rule.js'
import type { Config } from '../config/settings.js'
import type { CodeNetwork } from '../adapters/mesh/pairing/pairing.js'

/** What the home remembers of the node beside the mesh. */
export interface NodeRecord {
  readonly name: string
  readonly network: Config['network']['kind']
  readonly bootstrap: readonly string[]
  readonly localPort: number
  /** Rises with each mesh that was begun, so that a failed join leaves nothing in the next one's way. */
  readonly epoch: number
}

/** The record as stored: before a mesh stands, it holds at most the epoch. */
export type StoredRecord = Partial<NodeRecord>

/** What a record is made of. */
export interface RecordSources {
  readonly config: Config
  /** `--name`. */
  readonly name: string | null
  /** Out of the invite code; null without one. */
  readonly code: CodeNetwork | null
  readonly stored: StoredRecord | null
}

/**
 * What is given now wins over the invite, that over what the home remembers, that over the defaults; only the network of
 * an invite is not to be changed: its mesh is nowhere else.
 * @throws NodeError USAGE for a `--name` that is none, and for a network or bootstrap nodes that do not go with the invite
 * or with each other; CONFIG_INVALID for a `node.name` that is none
 */
export function nodeRecord({ config, name, code, stored }: RecordSources): NodeRecord {
  const { kind, bootstrap, localPort } = config.network
  const known = code ?? stored
  const given = (key: string): boolean => config.given.has(`network.${key}`)
  const network = given('kind') ? kind : (known?.network ?? kind)
  if (code !== null && code.network !== network)
    throw new NodeError('USAGE', `the invite is for a ${code.network} network, not for the ${network} one that was asked for`, {
      next: [`a2a-node start --join - --network ${code.network}`]
    })
  if (given('bootstrap') && !given('kind') && bootstrap.length > 0 && network !== 'private')
    throw new NodeError('USAGE', `bootstrap nodes are for a private network, and this one is ${network}`, {
      next: code === null ? ['a2a-node start --network private --bootstrap <host:port>'] : ['a2a-node start --join -']
    })
  return {
    name: ownName({ config, name, stored }),
    network,
    bootstrap: given('bootstrap') ? bootstrap : (known?.bootstrap ?? bootstrap),
    localPort: given('localPort') ? localPort : (known?.localPort ?? localPort),
    epoch: stored?.epoch ?? 1
  }
}

/** The name that goes into the certificate: only what every other node takes for a name. */
function ownName({ config, name, stored }: Omit<RecordSources, 'code'>): string {
  if (name !== null) return legalName(name, '--name', 'USAGE')
  if (stored?.name !== undefined) return stored.name
  if (config.node.name !== null) return legalName(config.node.name, 'node.name', 'CONFIG_INVALID')
  const machine = os.hostname().normalize('NFKC').trim()
  return nameFault(machine, NODE_NAME) === null ? machine : 'node'
}

function legalName(text: string, label: string, code: 'USAGE' | 'CONFIG_INVALID'): string {
  const name = text.trim()
  refuseName(name, NODE_NAME, { code, label, command: (better) => `a2a-node start --name ${better}` })
  return name
}

/** A number by chance for the cores of a home that was restored or repaired: of two that begin at one copy no core is the same. */
export function freshEpoch(): number {
  return randomInt(2 ** 32, 2 ** 47)
}
