import fs from 'node:fs'
import path from 'node:path'
import YAML from 'yaml'
import { z } from 'zod'
import { ROOT } from '../../support/nodes.js'

/** Where the data of the conformance runner stands. */
export const DATA = path.join(ROOT, 'test', 'conformance', 'a2a')

/** The bindings that a case may be limited to. */
export const BINDINGS = ['jsonrpc', 'rest', 'grpc'] as const
/** One of them. */
export type BindingName = (typeof BINDINGS)[number]

/** Who asks. `client` and `stranger` have all rights, `nobody` has no token, and an `impostor` a false one. */
const CALLERS = ['client', 'stranger', 'reader', 'sender', 'nobody', 'impostor'] as const
/** One of them. */
export type CallerName = (typeof CALLERS)[number]

/** Operations of A2A 1.0 by their names in JSON-RPC; the card has none there. */
const OPERATIONS = [
  'SendMessage',
  'SendStreamingMessage',
  'GetTask',
  'ListTasks',
  'CancelTask',
  'SubscribeToTask',
  'CreateTaskPushNotificationConfig',
  'GetTaskPushNotificationConfig',
  'ListTaskPushNotificationConfigs',
  'DeleteTaskPushNotificationConfig',
  'GetExtendedAgentCard',
  'GetAgentCard'
] as const
/** One of them. */
export type OperationName = (typeof OPERATIONS)[number]

const members = z.record(z.string(), z.unknown())

/** Expectations of a list of events: of a stream, or of notifications. */
const streamSchema = z.strictObject({
  least: z.int().optional(),
  most: z.int().optional(),
  /** No state after a final one, none of a task that has not begun after one that has. */
  forward: z.boolean().optional(),
  first: members.optional(),
  last: members.optional(),
  some: members.optional(),
  every: members.optional(),
  count: z.strictObject({ of: members, least: z.int() }).optional(),
  /** The last events are those of another stream. */
  endsLike: z.string().optional(),
  /** One of the notifications came more than once. */
  repeats: z.boolean().optional()
})

const stepSchema = z.strictObject({
  call: z.enum(OPERATIONS).optional(),
  raw: z
    .strictObject({
      method: z.enum(['GET', 'POST']).default('POST'),
      path: z.string().default(''),
      /** null takes a header away. */
      headers: z.record(z.string(), z.string().nullable()).default({}),
      body: z.unknown().optional(),
      text: z.string().optional()
    })
    .optional(),
  agent: z.enum(['acts', 'read', 'golden', 'wide']).optional(),
  by: z.enum(CALLERS).default('client'),
  /** Text of the message. */
  say: z.string().optional(),
  on: z.strictObject({ task: z.string().optional(), context: z.string().optional() }).default({}),
  /** Parameters beside the message. */
  with: members.default({}),
  /** The stream goes on under this name after its first event. */
  open: z.string().optional(),
  drain: z.string().optional(),
  close: z.string().optional(),
  /** Lets the agent go on. */
  go: z.literal(true).optional(),
  /** Waits for the notifications of the task. */
  hook: z.literal(true).optional(),
  /** Answers of an external agent, by operation. */
  peer: members.optional(),
  /** Operations that the external agent was asked for, and was not. */
  asked: z.array(z.enum(OPERATIONS)).optional(),
  never: z.array(z.enum(OPERATIONS)).optional(),
  /** The step is repeated until its answer is so. */
  until: members.optional(),
  status: z.unknown().optional(),
  headers: members.optional(),
  see: members.optional(),
  fails: members.optional(),
  orFails: members.optional(),
  stream: streamSchema.optional(),
  /** Values for later steps, by name. */
  keep: z.record(z.string(), z.string()).default({})
})

const caseSchema = z.strictObject({
  id: z.string().regex(/^[A-Z]+-[A-Z]+-\d{3}$/),
  level: z.enum(['must', 'should', 'may']),
  section: z.string(),
  about: z.string().min(1),
  only: z.array(z.enum(BINDINGS)).default([...BINDINGS]),
  needs: z.record(z.string(), z.boolean()).default({}),
  differs: z.string().optional(),
  steps: z.array(stepSchema).min(1)
})

/** One conformance case. */
export type Case = z.infer<typeof caseSchema>
/** One of its steps. */
export type Step = z.infer<typeof stepSchema>
/** Expectations of a list of events. */
export type StreamWants = z.infer<typeof streamSchema>

/** All cases in the order of their files. @throws when one has no valid form */
export function readCases(dir = path.join(DATA, 'cases')): Case[] {
  return fs
    .readdirSync(dir)
    .sort()
    .flatMap((name) => parseCases(fs.readFileSync(path.join(dir, name), 'utf8'), name))
}

/** The cases of one file. `name` is for errors. @throws when one has no valid form */
export function parseCases(text: string, name = 'cases'): Case[] {
  const read = z.array(caseSchema).safeParse(YAML.parse(text))
  if (!read.success) throw new Error(`${name}: ${z.prettifyError(read.error)}`)
  return read.data
}
