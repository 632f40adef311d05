import { z } from 'zod'
import { MESSAGE_TYPES } from '../../domain/envelope/envelope.js'
import { LOG_LEVELS, QUESTION_KINDS } from '../../domain/task/question.js'
import { EVENT_TYPES } from '../../kit/names/event-types.js'
import { NodeError } from '../../kit/errors.js'
import { jsonFault, SIZED_LIMITS } from '../../kit/json.js'
import type { Plan } from '../../domain/swarm/plan.js'
import type { CallName, Calls, NodeApi, WatchName, Watches } from '../../ports/node-api.js'
import type { SwarmRequest } from '../../ports/swarm-api.js'
import { MAX_LISTED_EVENTS, MAX_LISTED_TASKS, MAX_LISTED_TOOL_CALLS, MAX_PINGS, TOKEN_TTL_MAX_MS } from './terms.js'

const DAY_MS = 86_400_000
const KIB = 1024
/** Characters of a text for an agent: the largest value of `tools.maxPayloadBytes`. */
const MAX_INPUT = 16 * KIB * KIB

const none = z.strictObject({})
/** Id, name or prefix of a node, agent, task, swarm or invite; also `id@node` and `*`. */
const ref = z.string().min(1).max(256)
const tier = z.union([z.literal(0), z.literal(1), z.literal(2), z.literal(3)])
const justification = z.string().refine((text) => Buffer.byteLength(text) <= KIB, 'takes at most 1024 bytes')
const duration = z
  .int()
  .min(1)
  .max(30 * DAY_MS)

/** A place where any JSON may stand, its members may be bytes: the only kind of place that takes them. */
const json = z.unknown().superRefine((value, context) => {
  const fault = value === undefined ? 'is missing' : jsonFault(value, SIZED_LIMITS)
  if (fault !== null) context.addIssue({ code: 'custom', message: fault })
})

const item = z.strictObject({
  item: z
    .string()
    .min(1)
    .max(4 * KIB),
  input: json
})

const document = z.string().min(1).max(128)
const root = z.string().min(1).max(256).exactOptional()
const index = z.int().min(0)
const at = z.string().min(1).max(80)
const rule = z.strictObject({
  members: z.array(ref).max(256).exactOptional(),
  mine: z.boolean().exactOptional(),
  tier: z.enum(['L0', 'L1', 'L2', 'L3']).nullable().exactOptional(),
  sandboxes: z.array(z.string().min(1).max(64)).max(256).exactOptional(),
  unsandboxed: z.boolean().exactOptional()
})
const values = z.record(z.string().max(256), json)
const edit: z.ZodType<Calls['documents.edit']['params']['edit']> = z.union([
  z.strictObject({ type: z.literal('text'), root, text: z.string().max(KIB * KIB) }),
  z.strictObject({
    type: z.literal('text'),
    root,
    splice: z.strictObject({ at: index, remove: index, insert: z.string().max(KIB * KIB) })
  }),
  z.strictObject({ type: z.literal('map'), root, map: values }),
  z.strictObject({
    type: z.literal('map'),
    root,
    set: values,
    remove: z.array(z.string().max(256)).max(1000).exactOptional()
  }),
  z.strictObject({ type: z.literal('list'), root, list: z.array(json).max(100_000) }),
  z.strictObject({
    type: z.literal('list'),
    root,
    splice: z.strictObject({ at: index, remove: index, insert: z.array(json).max(100_000) })
  })
])
const bytes = z.instanceof(Uint8Array)
const reading = z.strictObject({ document, type: z.enum(['text', 'map', 'list']), root })
const sha256 = z.string().regex(/^[0-9a-f]{64}$/, 'must be a sha256: 64 of 0-9 a-f')
const capability = z.string().min(1).max(128)

const swarmRequest: z.ZodType<SwarmRequest> = z.strictObject({
  goal: z
    .string()
    .min(1)
    .max(64 * KIB),
  capability,
  strategy: z.enum(['each', 'map', 'race', 'vote', 'pipeline', 'plan']),
  items: z.array(item).min(1).max(10_000).exactOptional(),
  input: json.exactOptional(),
  stages: z.array(capability).min(1).max(64).exactOptional(),
  answers: z.int().min(1).max(64).exactOptional(),
  judge: capability.exactOptional(),
  // It is checked as a whole, with the places of its faults, when it is made into sub-tasks.
  plan: z.custom<Plan>((value) => jsonFault(value) === null, 'must be a plan').exactOptional(),
  reduce: capability.exactOptional(),
  labels: z.array(z.string().min(1).max(64)).min(1).max(32).exactOptional(),
  round: z
    .strictObject({
      number: z.int().min(1).max(10_000),
      check: z.string().max(64 * KIB),
      first: ref.exactOptional()
    })
    .exactOptional(),
  maxParallel: z.int().min(1).max(10_000).exactOptional(),
  retries: z.int().min(0).max(100).exactOptional(),
  deadlineMs: duration.exactOptional(),
  justification: justification.exactOptional(),
  allowRepeat: z.boolean().exactOptional(),
  takeover: z.boolean().exactOptional(),
  idempotencyKey: z.string().min(1).max(256).exactOptional()
})

const trust = z.enum(['mine', 'guest'])

const approval = z.strictObject({
  id: ref,
  remember: z.boolean().exactOptional(),
  content: z.unknown().optional()
})
const abilities = {
  takes: z.array(z.enum(QUESTION_KINDS)).max(QUESTION_KINDS.length).exactOptional(),
  logLevel: z.enum(LOG_LEVELS).exactOptional()
}

/** The parameters of every call: bounded, checked, unknown members refused. */
export const CALLS: { readonly [N in CallName]: z.ZodType<Calls[N]['params']> } = {
  'node.info': none,
  'node.status': none,
  'node.id': none,
  'node.stop': none,
  'node.metrics': none,
  'audit.flush': none,
  'node.backup': z.strictObject({ file: z.string().min(1).max(4096), force: z.boolean().exactOptional() }),
  'node.config': none,
  'peers.list': z.strictObject({ all: z.boolean().exactOptional() }),
  'peers.show': z.strictObject({ peer: ref }),
  'peers.rename': z.strictObject({ peer: ref, name: z.string().min(1).max(64) }),
  'peers.tier': z.strictObject({ peer: ref, tier }),
  'peers.trust': z.strictObject({ peer: ref, trust }),
  'peers.revoke': z.strictObject({ peer: ref, reason: z.string().max(256).exactOptional() }),
  'peers.address': z.strictObject({
    peer: ref,
    address: z.string().min(1).max(512),
    remove: z.boolean().exactOptional()
  }),
  'peers.ping': z.strictObject({ peer: ref, count: z.int().min(1).max(MAX_PINGS).exactOptional() }),
  'peers.examine': z.strictObject({ peer: ref }),
  'invite.create': z.strictObject({
    tier: tier.exactOptional(),
    admin: z.boolean().exactOptional(),
    ttlMs: z
      .int()
      .min(1000)
      .max(30 * DAY_MS)
      .exactOptional(),
    uses: z.int().min(1).max(1000).exactOptional(),
    sandboxId: z.string().min(1).max(64).exactOptional(),
    trust: trust.exactOptional()
  }),
  'invite.list': none,
  'invite.revoke': z.strictObject({ id: ref }),
  'token.create': z.strictObject({
    name: z.string().min(1).max(64).exactOptional(),
    tier: tier.exactOptional(),
    sandboxId: z.string().min(1).max(64).exactOptional(),
    scopes: z
      .array(z.enum(['read', 'send', 'admin']))
      .min(1)
      .max(3)
      .exactOptional(),
    ttlMs: z.int().min(1000).max(TOKEN_TTL_MAX_MS).nullable().exactOptional()
  }),
  'token.list': none,
  'token.revoke': z.strictObject({ id: ref }),
  'push.list': none,
  'push.retry': z.strictObject({ id: ref.exactOptional(), all: z.boolean().exactOptional() }),
  'oauth.client.create': z.strictObject({
    name: z.string().min(1).max(64).exactOptional(),
    isPublic: z.boolean().exactOptional(),
    tier: tier.exactOptional(),
    scopes: z.array(z.string().min(1).max(136)).min(1).max(64).exactOptional(),
    redirectUris: z.array(z.string().min(1).max(1024)).max(16).exactOptional()
  }),
  'oauth.client.list': none,
  'oauth.client.revoke': z.strictObject({ id: ref }),
  'oauth.requests': none,
  'oauth.show': z.strictObject({ code: ref }),
  'oauth.approve': z.strictObject({ code: ref }),
  'oauth.deny': z.strictObject({ code: ref }),
  'oauth.rotate': none,
  'mesh.settings': none,
  'mesh.set': z.strictObject({
    tiers: z
      .array(z.strictObject({ from: tier, to: z.array(tier).max(4), justification: z.boolean() }))
      .refine(
        (rules) => new Set(rules.map(({ from }) => from)).size === 4 && rules.length === 4,
        'one rule for each of the four tiers'
      )
      .exactOptional(),
    sandboxes: z
      .strictObject({ enforced: z.boolean(), allow: z.array(z.string().min(1).max(128)).max(256) })
      .exactOptional(),
    serial: z.int().min(0).exactOptional(),
    reset: z.boolean().exactOptional()
  }),
  'agents.list': z.strictObject({ origin: z.enum(['local', 'remote']).exactOptional() }),
  'agents.show': z.strictObject({ agent: ref }),
  'message.send': z.strictObject({
    agent: ref,
    text: z.string().max(MAX_INPUT),
    type: z.enum(['request', 'notification']).exactOptional(),
    justification: justification.exactOptional(),
    timeoutMs: duration.exactOptional(),
    wait: z.boolean().exactOptional(),
    allowRepeat: z.boolean().exactOptional(),
    all: z.boolean().exactOptional(),
    ...abilities
  }),
  'message.call': z.strictObject({
    agent: ref.nullable(),
    capability: z.string().min(1).max(128),
    input: json,
    justification: justification.exactOptional(),
    timeoutMs: duration.exactOptional(),
    wait: z.boolean().exactOptional(),
    allowRepeat: z.boolean().exactOptional(),
    record: z.boolean().exactOptional(),
    wantsContent: z.boolean().exactOptional(),
    context: ref.exactOptional(),
    ...abilities
  }),
  'message.answer': z.strictObject({
    id: ref,
    answer: z.union([
      z.strictObject({ ok: z.literal(true), result: z.record(z.string(), z.unknown()) }),
      z.strictObject({ ok: z.literal(false), message: z.string().max(1024) })
    ])
  }),
  'message.judge': z.strictObject({ agent: ref, capabilities: z.array(capability).max(10_000) }),
  'a2a.find': z.strictObject({ card: z.string().min(1).max(2048), skill: z.string().min(1).max(256).exactOptional() }),
  'swarm.start': swarmRequest,
  'swarm.preview': swarmRequest,
  'swarm.list': none,
  'swarm.show': z.strictObject({ id: ref }),
  'swarm.results': z.strictObject({ id: ref }),
  'swarm.retry': z.strictObject({ id: ref, failed: z.boolean().exactOptional(), unknown: z.boolean().exactOptional() }),
  'swarm.cancel': z.strictObject({ id: ref }),
  'tasks.list': z.strictObject({ limit: z.int().min(1).max(MAX_LISTED_TASKS).exactOptional() }),
  'tasks.show': z.strictObject({ id: ref }),
  'tasks.cancel': z.strictObject({ id: ref }),
  'context.list': none,
  'context.show': z.strictObject({ id: ref }),
  'policy.show': none,
  'policy.test': z.strictObject({
    from: ref,
    to: ref,
    type: z.enum(MESSAGE_TYPES).exactOptional(),
    capability: z.string().min(1).max(128).exactOptional(),
    sideEffect: z.enum(['none', 'read', 'write', 'exec']).exactOptional(),
    justification: justification.exactOptional()
  }),
  'approvals.list': z.strictObject({ machines: z.boolean().exactOptional() }),
  'approvals.show': z.strictObject({ id: ref }),
  'approvals.allow': approval,
  'approvals.deny': approval,
  'tools.calls': z.strictObject({
    tool: z.string().min(1).max(256).exactOptional(),
    failed: z.boolean().exactOptional(),
    since: z.int().min(0).exactOptional(),
    limit: z.int().min(1).max(MAX_LISTED_TOOL_CALLS).exactOptional()
  }),
  'tools.list': none,
  'tools.refresh': z.strictObject({
    server: z.string().min(1).max(2048).exactOptional(),
    accept: sha256.exactOptional()
  }),
  'documents.list': none,
  'documents.show': z.strictObject({ document }),
  'documents.create': z.strictObject({ name: document, see: rule.exactOptional(), write: rule.exactOptional() }),
  'documents.read': reading,
  'documents.edit': z.strictObject({ document, edit }),
  'documents.history': z.strictObject({ document, limit: z.int().min(1).max(1000).exactOptional() }),
  'documents.past': z.strictObject({ document, at }),
  'documents.restore': z.strictObject({ document, at, root }),
  'documents.forget': z.strictObject({ document }),
  'documents.remove': z.strictObject({ document }),
  'documents.restrict': z.strictObject({ document, see: rule, write: rule }),
  'documents.apply': z.strictObject({ document, session: ref, update: bytes }),
  'documents.awareness': z.strictObject({ document, session: ref, update: bytes })
}

/** The parameters of every watch. */
export const WATCHES: { readonly [N in WatchName]: z.ZodType<Watches[N]['params']> } = {
  'node.status': none,
  'peers.list': CALLS['peers.list'],
  'agents.list': CALLS['agents.list'],
  'tasks.list': CALLS['tasks.list'],
  'message.send': CALLS['message.send'],
  'message.call': CALLS['message.call'],
  'approvals.list': CALLS['approvals.list'],
  'documents.list': none,
  'documents.read': reading,
  'documents.live': z.strictObject({ document, clientId: z.int().positive().exactOptional() }),
  'swarm.watch': z.strictObject({ id: ref }),
  'node.events': z.strictObject({
    follow: z.boolean().exactOptional(),
    all: z.boolean().exactOptional(),
    types: z.array(z.enum(EVENT_TYPES)).min(1).max(32).exactOptional(),
    about: z.string().min(1).max(256).exactOptional(),
    failed: z.boolean().exactOptional(),
    since: z.int().min(0).exactOptional(),
    limit: z.int().min(1).max(MAX_LISTED_EVENTS).exactOptional()
  })
}

/**
 * The same API, which first checks parameters against {@link CALLS} and {@link WATCHES}.
 * @throws NodeError USAGE that names the wrong parameter
 */
export function checkedApi(api: NodeApi): NodeApi {
  return {
    async call(name, params, options) {
      return await api.call(name, check(CALLS[name], params), options)
    },
    async *watch(name, params, options) {
      yield* api.watch(name, check(WATCHES[name], params), options)
    }
  }
}

function check<T>(schema: z.ZodType<T>, value: unknown): T {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  const [issue] = result.error.issues
  const place = issue === undefined || issue.path.length === 0 ? 'the parameters' : issue.path.join('.')
  throw new NodeError('USAGE', `${place}: ${issue?.message ?? 'not allowed'}`)
}
