import { shortId } from '../../kit/ids.js'
import { shown } from '../../kit/text.js'
import type { NatKind } from '../../ports/network/reach.js'
import type { Problem, StatusInfo } from '../../ports/node-api.js'
import type { PeerInfo } from '../../ports/peer-api.js'
import { type Installation, joinLines } from '../start/install.js'
import type { Output } from './output.js'
import { type Cell, factLines, foldedLines, plural } from './render.js'
import { tildePath } from '../words.js'

const NETWORKS: Readonly<Record<string, string>> = {
  public: 'public DHT',
  private: 'private DHT',
  local: 'this machine only'
}

/** `a2a-node 0.1.0   node laptop (k7f2...9d3a)   L0   mesh home`; a narrow terminal gets it on three lines. */
export function headLines(output: Output, info: Pick<StatusInfo, 'version' | 'node' | 'mesh'>): string[] {
  const { node, mesh } = info
  const parts = (paint: (text: string) => string): string[] => [
    `a2a-node ${shown(info.version)}`,
    `node ${paint(shown(node.name))} (${shortId(node.id)})   ${node.tier}`,
    `mesh ${paint(shown(mesh.name))}`
  ]
  const { length } = parts((text) => text).join('   ')
  const painted = parts((text) => output.paint('bold', text))
  return length <= (output.width ?? length) ? [painted.join('   ')] : painted
}

/** An agent file that cannot be used, as a fact. */
export function faultFact(fault: StatusInfo['agents']['faults'][number]): readonly [string, Cell] {
  const place = fault.line === null ? fault.file : `${fault.file}:${fault.line}`
  return ['fault', { text: `${place}: ${fault.reason}`, style: 'yellow' }]
}

/** A problem whose next step is for the node that was meant. */
export function hinted<P extends Problem>(output: Output, problem: P): P {
  return { ...problem, next: output.hint(problem.next) }
}

/** The same of each. */
export function hintedAll<P extends Problem>(output: Output, problems: readonly P[]): P[] {
  return problems.map((one) => hinted(output, one))
}

/** Each problem with its next step. `isNote`: for standard error. */
export function problemLines(output: Output, problems: readonly Problem[], isNote = false): string[] {
  const linesOf = ({ message, code }: Problem): string[] => {
    const text = `${shown(message, 500)}  [${shown(code)}]`
    return isNote
      ? [`${output.paintNote('yellow', 'problem:')} ${text}`]
      : foldedLines(output, text, { head: `${output.paint('yellow', 'problem:')} `, column: 9 })
  }
  return problems.flatMap((one) => [
    ...linesOf(one),
    ...(one.next === '' ? [] : [`  try: ${shown(output.hint(one.next), 1000)}`])
  ])
}

/** Prints the problems of a list on standard error; an object of `--json` has them in itself. */
export function noteProblems(output: Output, problems: readonly Problem[]): void {
  if (!output.json) for (const line of problemLines(output, problems, true)) output.note(line)
}

/** Codes of the problems for which other machines do not find this node. */
const OF_NETWORK: readonly string[] = [
  'NETWORK_OFFLINE',
  'BOOTSTRAP_OFFLINE',
  'BOOTSTRAP_MISSING',
  'WEBSOCKET_OFFLINE',
  'UDP_BLOCKED',
  'NAT_RANDOM'
]

/** The problems of the network: with one, an invited machine does not find this node. */
export function networkProblems(problems: readonly Problem[]): Problem[] {
  return problems.filter(({ code }) => OF_NETWORK.includes(code))
}

/** The text of a list without rows. `problems`: why the list may be incomplete. */
export function emptyText(what: string, problems: readonly Problem[]): string {
  return problems.length === 0 ? `no ${what}` : `no ${what} that this node knows of`
}

const NATS: Readonly<Record<NatKind, string>> = {
  open: 'none in the way',
  consistent: 'one port for all peers',
  random: 'another port for each peer (random)',
  unknown: 'not known yet'
}

/** Whether the DHT answers, the NAT and the address that others see, as facts; none where no DHT is asked. */
export function reachFacts({ reach }: Pick<StatusInfo, 'reach'>): (readonly [string, Cell])[] {
  if (reach?.dht === undefined || reach.dht === null) return []
  const { dht, nat, address } = reach
  if (dht.state === 'unknown') return [['dht', 'its first answer is awaited']]
  if (dht.state === 'silent') return [['dht', { text: `no node of it answers since ${dht.since}`, style: 'yellow' }]]
  const since = nat.since === dht.since ? '' : `, since ${nat.since}`
  const seen = address === null ? '' : `; others see ${address}`
  return [
    ['dht', `answers since ${dht.since}`],
    ['nat', `${NATS[nat.kind]}${since}${seen}`]
  ]
}

/** The fact of the WebSocket at which members connect; none without one. */
export function webSocketFacts({ websocket }: Pick<StatusInfo, 'websocket'>): (readonly [string, Cell])[] {
  if (websocket === null || websocket === undefined) return []
  const isOwn = /^ws:\/\/(?:127\.|\[::1\])/.test(websocket)
  return [['websocket', isOwn ? `${websocket} (this machine and its reverse proxy alone)` : websocket]]
}

/**
 * The banner of `start` for the running node. `isLogged`: its problems are in the log beside it, so only those of the
 * network are shown, with their next step.
 */
export function bannerLines(
  output: Output,
  parts: {
    info: StatusInfo
    peers: readonly PeerInfo[]
    store: string
    userHome: string | undefined
    isLogged: boolean
    installed: Installation
  }
): string[] {
  const { info, peers, store, userHome, isLogged, installed } = parts
  const online = peers.filter((peer) => peer.status === 'online').length
  const count = peers.length === 0 ? '0 peers yet' : `${online} of ${plural(peers.length, 'peer')} online`
  const { ready } = info.agents
  const lines = [
    ...headLines(output, info),
    ...factLines(output, [
      ['store', tildePath(store, userHome)],
      ['network', `${NETWORKS[info.network] ?? info.network}, ${count}`],
      ...reachFacts(info),
      ...(info.http === null
        ? []
        : [['http', `${info.http}  (token: ${output.hint('a2a-node a2a token create')})`] as const]),
      ...webSocketFacts(info),
      ...(info.grpc === undefined ? [] : [['grpc', info.grpc] as const]),
      ['agents', ready.length === 0 ? 'none ready' : `${ready.length} ready: ${ready.join(', ')}`]
    ]),
    ...problemLines(output, isLogged ? networkProblems(info.problems) : info.problems).map((line) => `  ${line}`)
  ]
  if (info.mesh.members > 1) return lines
  const code = `(code: ${output.hint('a2a-node invite')})`
  if (info.network === 'local')
    return [
      ...lines,
      'Another node on this machine:',
      `  a2a-node --home <other directory> start --join -      ${code}`
    ]
  return [...lines, ...joinLines(installed, `      ${code}`)]
}
