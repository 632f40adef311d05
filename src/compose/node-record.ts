import { randomInt } from 'node:crypto'
import os from 'node:os'
import { NodeError } from '../kit/errors.js'
import { type NameRefusal, refuseName } from '../kit/names/refuse-name.js'
import { nameFault, NODE_NAME } from '../kit/names/rule.js'
import type { Config } from '../config/settings.js'
import type { CodeNetwork } from '../adapters/mesh/pairing/pairing.js'

/** The stored settings of the node beside its mesh. */
export interface NodeRecord {
  readonly name: string
  readonly network: Config['network']['kind']
  readonly bootstrap: readonly string[]
  readonly localPort: number
  /** Rises with each begun mesh, so that the cores of a failed join do not conflict with the next. */
  readonly epoch: number
}

/** The record as stored: without a mesh it holds at most the epoch. */
export type StoredRecord = Partial<NodeRecord>

/** Sources of a record. */
export interface RecordSources {
  readonly config: Config
  /** `--name`. */
  readonly name: string | null
  /** From the invite code; null without one. */
  readonly code: CodeNetwork | null
  readonly stored: StoredRecord | null
}

/**
 * Merges the sources. Precedence: given settings, the invite, the stored record, the defaults. Given settings cannot
 * change the network of an invite, since its mesh is on no other network.
 * @throws NodeError USAGE for an invalid `--name`, and for a network or bootstrap nodes that contradict the invite or
 * each other; CONFIG_INVALID for an invalid `node.name`
 */
export function nodeRecord({ config, name, code, stored }: RecordSources): NodeRecord {
  const { kind, bootstrap, localPort } = config.network
  const known = code ?? stored
  const given = (key: string): boolean => config.given.has(`network.${key}`)
  const network = given('kind') ? kind : (known?.network ?? kind)
  if (code !== null && code.network !== network)
    throw new NodeError(
      'USAGE',
      `the invite is for a ${code.network} network, not for the ${network} one that was asked for`,
      {
        next: [`a2a-node start --join - --network ${code.network}`]
      }
    )
  refuseServing(config, { network, joins: code !== null })
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

/**
 * A bootstrap node is of a private network: on another one nobody would ask it.
 * @throws NodeError USAGE
 */
function refuseServing(
  { network: { serveBootstrap }, given }: Config,
  { network, joins }: { readonly network: NodeRecord['network']; readonly joins: boolean }
): void {
  if (serveBootstrap === null || network === 'private' || !given.has('network.serveBootstrap')) return
  const state = `a bootstrap node on ${serveBootstrap} is for a private network, and this one is ${network}`
  throw new NodeError('USAGE', state, {
    next: joins
      ? ['a2a-node start --join - --no-serve-bootstrap']
      : [`a2a-node start --network private --serve-bootstrap ${serveBootstrap}`, 'a2a-node start --no-serve-bootstrap']
  })
}

/** The name for the certificate, which must be valid for all other nodes. */
function ownName({ config, name, stored }: Omit<RecordSources, 'code'>): string {
  const command = (better: string): string => `a2a-node start --name ${better}`
  if (name !== null) return legalName(name, { label: '--name', code: 'USAGE', command })
  if (stored?.name !== undefined) return stored.name
  if (config.node.name !== null)
    return legalName(config.node.name, { label: 'node.name', code: 'CONFIG_INVALID', command })
  return machineName()
}

/** The name of a node without another one: that of its machine, or `node`. */
function machineName(): string {
  const machine = os.hostname().normalize('NFKC').trim()
  return nameFault(machine, NODE_NAME) === null ? machine : 'node'
}

/**
 * The name of a node whose home was copied from another node: `given`, else the configured name, that of the machine,
 * or the former name with a number, whichever first differs from the former one. @throws NodeError USAGE for an invalid
 * `given`
 */
export function nameBeside(former: string | null, given: string | null, configured: string | null): string {
  // Only an option, so that the command line keeps its other words.
  if (given !== null)
    return legalName(given, { label: '--name', code: 'USAGE', command: (better) => `--name ${better}` })
  const names = [...(configured === null ? [] : [configured.trim()]), machineName(), `${former}-2`, 'node', 'node-2']
  return names.find((name) => name !== former && nameFault(name, NODE_NAME) === null) ?? 'node'
}

function legalName(text: string, refusal: NameRefusal): string {
  const name = text.trim()
  refuseName(name, NODE_NAME, refusal)
  return name
}

/** A random epoch for a restored or repaired home, so that two homes from one copy share no core. */
export function freshEpoch(): number {
  return randomInt(2 ** 32, 2 ** 47)
}
