import { Abort } from '../../kit/abort.js'
import { asNodeError, type ErrorCode, NodeError } from '../../kit/errors.js'
import { type NodeId, shortId } from '../../kit/ids.js'
import { OPERATOR } from '../../kit/names/rule.js'
import { shown } from '../../kit/text.js'
import { activeMembers, isActive } from '../../domain/membership/view.js'
import {
  type ApprovalAnswers,
  type ApprovalCall,
  type ApprovalDecider,
  APPROVALS_PATH,
  approvalDecider,
  decodeApprovalAnswer,
  decodeApprovalCall,
  encodeApprovalAnswer,
  encodeApprovalCall,
  MAX_LISTED_APPROVALS
} from '../../domain/policy/approval-call.js'
import { mayDecide } from '../../domain/policy/approval-deciders.js'
import { effectiveParty } from '../../domain/routing/effective.js'
import type { CallHandler } from '../../ports/member-calls.js'
import type { Calls, Principal } from '../../ports/node-api.js'
import type { ApprovalDetail, ApprovalResult, MachineApprovals } from '../../ports/policy-api.js'
import type { NodeCore } from '../node.js'
import type { PendingApproval } from '../policy/pending-approvals.js'
import { answerQuestion, showQuestion } from './call-questions.js'
import { decideApproval, listApprovals, showApproval } from './approvals.js'
import { beyondAuthority } from './call-rights.js'

/** How long one machine may take to answer, in milliseconds. */
export const MACHINE_ANSWER_MS = 5000
/** Machines asked at once. */
export const MAX_ASKED_MACHINES = 64
/** Characters of an id or prefix that is looked for elsewhere. */
const MAX_ID = 64

/** Dependencies of approvals at machines of one person. */
export type MachineApprovalsDeps = Pick<
  NodeCore,
  | 'approvals'
  | 'deps'
  | 'directory'
  | 'events'
  | 'guests'
  | 'inbound'
  | 'memberCalls'
  | 'policy'
  | 'presence'
  | 'questions'
  | 'requests'
  | 'self'
  | 'trust'
>

/** Answers calls of the other machines of this node's owner about the approvals of this node. */
export function serveApprovals(node: MachineApprovalsDeps): void {
  const handler: CallHandler = async ({ peer, body }) => {
    const answer = await answerTo(node, peer, decodeApprovalCall(body))
    return { body: () => encodeApprovalAnswer(answer) }
  }
  node.memberCalls.serveAt(APPROVALS_PATH, handler)
}

type MachineAnswer = Parameters<typeof encodeApprovalAnswer>[0]

/** Never rejects. */
async function answerTo(node: MachineApprovalsDeps, peer: NodeId, call: ApprovalCall | null): Promise<MachineAnswer> {
  try {
    if (call === null) throw new NodeError('FORBIDDEN', 'a call about approvals that this node cannot read')
    const caller = deciderOf(node, peer, call.by)
    return { answer: await answered(node, call, { caller, peer }) }
  } catch (error) {
    const failure = asNodeError(error)
    if (call === null || call.do === 'allow' || call.do === 'deny' || failure.code === 'FORBIDDEN')
      noteRefused(node, { peer, call }, failure)
    return { error: failure.toBody() }
  }
}

/** The caller of another machine of the owner. */
interface MachineCaller {
  readonly caller: Principal
  readonly peer: NodeId
}

async function answered(node: MachineApprovalsDeps, call: ApprovalCall, by: MachineCaller): Promise<unknown> {
  if (call.do === 'list') {
    const decided = new Set(node.approvals.list().flatMap((one) => (mayDecideOne(node, one, by) ? [one.id] : [])))
    if (call.questions === true && mayAnswer(node, by)) for (const { id } of node.questions.list()) decided.add(id)
    const approvals = listApprovals(node).approvals.filter(({ id }) => decided.has(id))
    const rows = approvals.slice(0, MAX_LISTED_APPROVALS)
    return { approvals: rows, more: approvals.length - rows.length }
  }
  if (node.questions.isId(call.id)) return answeredQuestion(node, call, by)
  const one = node.approvals.get(call.id)
  const { id } = one
  // A decision counts for the very message of the list, never for one of a longer id.
  if (call.do !== 'find' && id !== call.id) throw new NodeError('APPROVAL_NOT_FOUND', `no waiting approval ${call.id}`)
  if (!mayDecideOne(node, one, by)) throw decidedHere(node, id)
  if (call.do === 'find') return { id }
  const who = { by: `${shown(by.caller.name, 64)} of ${machineText(node, by.peer)}`, node: by.peer }
  if (call.do !== 'show') return await decideApproval(node, call.do, { id, ...who })
  const detail = showApproval(node, id)
  return { ...detail, whole: { ...detail.whole, input: node.deps.toAgentJson(detail.whole.input) } }
}

/** A question is to the owner of this node: a machine that decides as this node answers it. */
function answeredQuestion(
  node: MachineApprovalsDeps,
  call: Exclude<ApprovalCall, { do: 'list' }>,
  by: MachineCaller
): unknown {
  const { id } = node.questions.get(call.id)
  if (call.do !== 'find' && id !== call.id) throw new NodeError('APPROVAL_NOT_FOUND', `no waiting question ${call.id}`)
  if (!mayAnswer(node, by)) throw decidedHere(node, id)
  if (call.do === 'find') return { id }
  if (call.do === 'show') return showQuestion(node, id)
  const content = call.do === 'allow' && call.content !== undefined ? { content: call.content } : {}
  const info = answerQuestion(node, call.do, { id, ...content })
  const [code, done] =
    call.do === 'allow' ? (['ALLOWED', 'answered'] as const) : (['POLICY_DENIED', 'declined'] as const)
  const reason = `${id} ${done} by ${shown(by.caller.name, 64)} of ${machineText(node, by.peer)}`
  node.deps.audit.append({
    kind: 'approval',
    code,
    rule: 'approvals: own machines',
    reason,
    peer: by.peer,
    by: by.peer
  })
  return info
}

function mayAnswer({ deps }: MachineApprovalsDeps, { caller }: MachineCaller): boolean {
  return caller.tier <= deps.membership.certificate().body.maxTier
}

/** May a caller of another machine of the owner decide a message now, by the rules of this node? */
function mayDecideOne(
  { deps, directory, inbound, trust }: MachineApprovalsDeps,
  { incoming, question }: PendingApproval,
  { caller, peer }: MachineCaller
): boolean {
  const isFree = (): boolean => {
    const certified = directory.party({ agentId: OPERATOR, nodeId: peer })
    if (certified === null) return false
    const again = inbound.askAgain(incoming, { party: { ...certified, tier: caller.tier }, certified })
    return 'verdict' in again && again.verdict.allowed
  }
  return mayDecide(caller.tier, deps.membership.certificate().body.maxTier, {
    senderTrust: trust.of(incoming.sender.nodeId),
    senderTier: question.sender.tier,
    isFree
  })
}

function decidedHere({ directory, self }: MachineApprovalsDeps, id: string): NodeError {
  const name = shown(directory.ref(self).name, 64)
  const reason = 'a weaker machine decides there only about guests, and about work that it may do itself'
  return new NodeError('POLICY_DENIED', `${id} is decided on ${name}: ${reason}`, {
    next: [`a2a-node approvals show ${id}   # on ${name}`]
  })
}

/**
 * The caller of another machine, with the least of its claims and of the certificates of its node.
 * @throws NodeError FORBIDDEN, SANDBOX_VIOLATION when it decides nothing here
 */
function deciderOf(node: MachineApprovalsDeps, peer: NodeId, by: ApprovalDecider): Principal {
  const { deps, directory, trust, self } = node
  const view = deps.log.view()
  const [certificate, admitted] = [directory.certificate(peer), view.members.get(peer)]
  const isMine = peer !== self && isActive(view, peer) && trust.of(peer) === 'mine'
  if (!isMine || certificate === null || admitted === undefined)
    throw new NodeError('FORBIDDEN', 'its approvals are decided by machines of its owner alone')
  const { tier, sandboxId } = effectiveParty({ certificate, card: by, hops: [admitted.certificate.body] })
  const scopes = by.isAdmin ? (['read', 'admin'] as const) : (['read'] as const)
  const { kind, name, isLimited } = by
  const principal = { kind, name, tier, sandboxId, scopes, ...(isLimited ? { agents: [] } : {}) }
  // A weaker tier decides some messages: see `mayDecideOne`.
  const refusal = refusalOf(principal, principal.tier)
  if (refusal !== null) throw refusal
  return principal
}

/** Why a caller decides no approvals; null: it may. */
function refusalOf(caller: Principal, nodeTier: Principal['tier']): NodeError | null {
  if (!caller.scopes.includes('admin'))
    return new NodeError('FORBIDDEN', 'approvals of another machine need the scope admin')
  return beyondAuthority('approvals.allow', caller, nodeTier)
}

function machineText({ directory }: Pick<MachineApprovalsDeps, 'directory'>, peer: NodeId): string {
  return `${shown(directory.ref(peer).name, 64)} (${shortId(peer)})`
}

function noteRefused(
  node: MachineApprovalsDeps,
  { peer, call }: { readonly peer: NodeId; readonly call: ApprovalCall | null },
  failure: NodeError
): void {
  const { code, message } = failure
  const id = call !== null && 'id' in call ? ` ${shown(call.id, 64)}` : ''
  const by = call === null ? '' : ` by ${shown(call.by.name, 64)} of ${machineText(node, peer)}`
  const reason = `${call?.do ?? 'call'}${id}${by}: ${shown(message)}`
  node.deps.audit.append({ kind: 'refusal', code, rule: 'approvals: own machines', reason, peer, by: peer })
}

/**
 * The pending approvals of the other machines of the owner, each with its node or with an error. Empty for a caller
 * that may not decide them. `known`: the answer of a machine that is not asked.
 */
export async function listMachines(
  node: MachineApprovalsDeps,
  caller: Principal,
  known: (peer: NodeId) => MachineApprovals | null = () => null
): Promise<MachineApprovals[]> {
  const by = claimOf(node, caller)
  if (by instanceof NodeError) return []
  return await eachOf(ownMachines(node), async (peer) => {
    const ref = node.directory.ref(peer)
    const row = known(peer)
    if (row !== null) return row
    try {
      const { approvals, more } = await ask(node, peer, { do: 'list', questions: true, by })
      return { node: ref, approvals: approvals.map((one) => ({ ...one, toNode: ref })), more, error: null }
    } catch (error) {
      return { node: ref, approvals: [], more: 0, error: asNodeError(error).toBody() }
    }
  })
}

/** One approval of this node, or of another machine of its owner. @throws NodeError as {@link ask} */
export async function showAnywhere(node: MachineApprovalsDeps, id: string, caller: Principal): Promise<ApprovalDetail> {
  const found = await findElsewhere(node, id, caller)
  if (found === null) return node.questions.isId(id) ? showQuestion(node, id) : showApproval(node, id)
  const { peer, by } = found
  return { ...(await ask(node, peer, { do: 'show', id: found.id, by })), toNode: node.directory.ref(peer) }
}

/**
 * Decides an approval of this node, or else of another machine of its owner; answers a question of this node.
 * @throws NodeError the errors of `Approvals` and {@link ask}; USAGE to remember a decision of another machine
 */
export async function decideAnywhere(
  node: MachineApprovalsDeps,
  decision: 'allow' | 'deny',
  { id, remember = false, caller, ...rest }: Calls['approvals.allow']['params'] & { readonly caller: Principal }
): Promise<ApprovalResult> {
  const isQuestion = node.questions.isId(id)
  const found = await findElsewhere(node, id, caller)
  if (found === null && isQuestion) return answerQuestion(node, decision, { id, remember, ...rest })
  if (found === null) return await decideApproval(node, decision, { id, remember, by: caller.name })
  const { peer, by } = found
  const { name } = node.directory.ref(peer)
  if (remember && isQuestion) throw new NodeError('USAGE', 'an answer to a question cannot be remembered')
  if (remember)
    throw new NodeError('USAGE', `${found.id} waits on ${name}: a rule is written on that machine only`, {
      next: [`a2a-node approvals ${decision} ${found.id} --remember   # on ${name}`]
    })
  const content = isQuestion && rest.content !== undefined ? { content: rest.content } : {}
  return {
    ...(await ask(node, peer, { do: decision, id: found.id, by, ...content })),
    toNode: node.directory.ref(peer)
  }
}

interface FoundElsewhere {
  readonly peer: NodeId
  readonly id: string
  readonly by: ApprovalDecider
}

/**
 * The other machine where an approval waits; null: it is one of this node.
 * @throws NodeError APPROVAL_NOT_FOUND, AMBIGUOUS_NAME, APPROVAL_TIMEOUT; FORBIDDEN for a caller without the right
 */
async function findElsewhere(
  node: MachineApprovalsDeps,
  id: string,
  caller: Principal
): Promise<FoundElsewhere | null> {
  const missing = missingHere(node, id)
  const machines = ownMachines(node)
  if (missing === null || machines.length === 0 || id.length > MAX_ID) return null
  const by = claimOf(node, caller)
  if (by instanceof NodeError) throw caller.scopes.includes('admin') ? by : missing
  const answers = await eachOf(machines, async (peer) => {
    try {
      return { peer, id: (await ask(node, peer, { do: 'find', id, by })).id, by }
    } catch (error) {
      return { peer, failure: asNodeError(error) }
    }
  })
  const [hit, ...others] = answers.filter((one): one is FoundElsewhere => 'id' in one)
  if (hit !== undefined && others.length === 0) return hit
  if (hit !== undefined)
    throw new NodeError('AMBIGUOUS_NAME', `"${shown(id)}" may mean approvals of several machines`, {
      data: { candidates: [hit, ...others].map((one) => `${one.id} on ${node.directory.ref(one.peer).name}`) },
      next: ['a2a-node approvals ls']
    })
  throw nowhere(node, missing, answers)
}

/** The error of this node for an approval that it does not have; null: it has it. @throws other errors */
function missingHere({ approvals, questions }: MachineApprovalsDeps, id: string): NodeError | null {
  try {
    if (questions.isId(id)) questions.get(id)
    else approvals.get(id)
    return null
  } catch (error) {
    const failure = asNodeError(error)
    if (failure.code === 'APPROVAL_NOT_FOUND') return failure
    throw failure
  }
}

/** Errors of a machine that has, or had, the approval. */
const TELLING: ReadonlySet<ErrorCode> = new Set<ErrorCode>(['APPROVAL_TIMEOUT', 'AMBIGUOUS_NAME', 'POLICY_DENIED'])

/** The error for an approval that no machine has: it names the machines that could not be asked. */
function nowhere(
  { directory }: MachineApprovalsDeps,
  missing: NodeError,
  answers: readonly { readonly peer: NodeId; readonly failure?: NodeError }[]
): NodeError {
  const failures = answers.flatMap(({ peer, failure }) => (failure === undefined ? [] : [{ peer, failure }]))
  const telling = failures.find(({ failure: { code } }) => TELLING.has(code))
  if (telling !== undefined) return telling.failure
  const unasked = failures.filter(({ failure }) => failure.code !== 'APPROVAL_NOT_FOUND')
  if (unasked.length === 0) return missing
  const names = unasked.map(({ peer, failure }) => `${shown(directory.ref(peer).name, 64)}: ${failure.message}`)
  return new NodeError('APPROVAL_NOT_FOUND', `${missing.message}; not asked: ${names.slice(0, 8).join('; ')}`, {
    next: ['a2a-node approvals ls', 'a2a-node peers']
  })
}

/** The other machines of the owner, as this node regards them. */
function ownMachines({ deps, self, trust }: MachineApprovalsDeps): NodeId[] {
  return activeMembers(deps.log.view()).filter((peer) => peer !== self && trust.of(peer) === 'mine')
}

/** The claims that a caller takes to another machine, or why it takes none. */
function claimOf({ deps }: MachineApprovalsDeps, caller: Principal): ApprovalDecider | NodeError {
  const refusal = refusalOf(caller, deps.membership.certificate().body.maxTier)
  if (refusal !== null) return refusal
  const by = approvalDecider(caller)
  if (by !== null && !by.isLimited) return by
  const who = by === null ? `a caller of kind ${caller.kind}` : 'a caller limited to some capabilities'
  return new NodeError('FORBIDDEN', `${who} decides on this machine only`)
}

/**
 * Asks a machine, for {@link MACHINE_ANSWER_MS} at most.
 * @throws NodeError of that machine; PEER_OFFLINE, CHANNEL_CLOSED; TIMEOUT: a decision may have been made;
 * CAPABILITY_NOT_FOUND from an older build
 */
async function ask<N extends ApprovalCall['do']>(
  { deps, directory, memberCalls, presence }: MachineApprovalsDeps,
  peer: NodeId,
  call: Extract<ApprovalCall, { do: N }>
): Promise<ApprovalAnswers[N]> {
  const name = shown(directory.ref(peer).name, 64)
  if (!presence.isOnline(peer)) throw new NodeError('PEER_OFFLINE', `${name} is offline`)
  const bytes = encodeApprovalCall(call)
  if (bytes === null) throw new NodeError('PAYLOAD_TOO_LARGE', `the content is too large; answer on ${name} itself`)
  const over = new Abort()
  const late = new NodeError('TIMEOUT', `${name} gave no answer in time; a decision may have been made there`, {
    next: ['a2a-node approvals ls']
  })
  const timedOut = new Promise<never>((_resolve, reject) => over.addEventListener('abort', () => reject(late)))
  const timer = deps.clock.after(MACHINE_ANSWER_MS, () => over.abort())
  const request = { path: APPROVALS_PATH, parameters: {}, body: bytes }
  const answer = lastOf(() => memberCalls.open(peer, request, over))
  try {
    const body = await Promise.race([answer, timedOut])
    const read = body === null ? null : decodeApprovalAnswer(call.do, body)
    if (read === null) throw olderBuild(name)
    if ('error' in read) throw NodeError.fromBody(read.error)
    return read.answer
  } catch (error) {
    const failure = asNodeError(error)
    throw failure.code === 'CAPABILITY_NOT_FOUND' ? olderBuild(name) : failure
  } finally {
    deps.clock.clear(timer)
    answer.catch(() => {})
    timedOut.catch(() => {})
  }
}

function olderBuild(name: string): NodeError {
  return new NodeError('CAPABILITY_NOT_FOUND', `${name} runs an older build, where only ${name} itself decides`, {
    next: [`a2a-node approvals ls   # on ${name}`]
  })
}

/** The body of the one answer of a call; null: it ended without one. */
async function lastOf(open: () => ReturnType<MachineApprovalsDeps['memberCalls']['open']>): Promise<Uint8Array | null> {
  for await (const piece of open()) return piece.type === 'answer' ? piece.body : null
  return null
}

/** Runs a function for each item, {@link MAX_ASKED_MACHINES} at once; results in the order of the items. */
async function eachOf<T, R>(items: readonly T[], run: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = []
  const left = [...items.entries()]
  const work = async (): Promise<void> => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) results[next[0]] = await run(next[1])
  }
  await Promise.all(Array.from({ length: MAX_ASKED_MACHINES }, work))
  return results
}
