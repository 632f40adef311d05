import { setTimeout as delay } from 'node:timers/promises'
import { NodeError, type ErrorBody, type ErrorCode } from '../../kit/errors.js'
import { isRecord } from '../../kit/json.js'
import { shellWord, shown } from '../../kit/text.js'
import type { Reply } from '../../ports/node-api.js'
import type { CommandContext } from '../context.js'
import { followCall } from '../follow-message.js'
import { given } from '../options.js'
import { timeoutSteps } from '../timeouts.js'
import type { ProgressLevel } from '../terminal/message-progress.js'

/** Milliseconds of a step by default. */
const STEP_MS = 120_000
/** Milliseconds by default of a step that may wait for an approval, whose own time is 5 min by default. */
const APPROVAL_STEP_MS = 360_000
/** Pauses before a step is tried again, in milliseconds. */
const PAUSES_MS = [500, 1000, 2000, 4000, 8000]
/** Errors of a cut link or a busy node. */
const PASSING: ReadonlySet<ErrorCode> = new Set([
  'PEER_OFFLINE',
  'TIMEOUT',
  'DELIVERY_FAILED',
  'CHANNEL_CLOSED',
  'OVERLOADED'
])

/** A file on another node. */
export interface FileAddress {
  /** `files@desktop`. */
  readonly agent: string
  readonly node: string
  readonly path: string
}

/** `desktop:/srv/a.bin`, `files@desktop:a.bin`. @throws NodeError USAGE */
export function fileAddress(text: string): FileAddress {
  const at = text.indexOf(':')
  const place = text.slice(0, Math.max(0, at))
  const node = place.slice(place.lastIndexOf('@') + 1)
  if (node === '' || place.startsWith('@'))
    throw new NodeError('USAGE', `${JSON.stringify(shown(text))} is no <node>:<path>, such as desktop:notes/a.txt`)
  return { agent: place.includes('@') ? place : `files@${node}`, node, path: text.slice(at + 1) }
}

/** Dependencies of {@link RemoteFiles}. */
interface RemoteDeps {
  readonly context: Pick<CommandContext, 'output' | 'api'>
  readonly address: FileAddress
  readonly level: ProgressLevel
  readonly signal: AbortSignal
  readonly timeoutMs: number | undefined
  readonly justification: string | undefined
}

/** A capability with its input. */
type FileStep = readonly [capability: string, input: object]

/** The agent with files on another node. Its answers are checked for type by the reader of each member. */
export class RemoteFiles {
  readonly #deps: RemoteDeps

  constructor(deps: RemoteDeps) {
    this.#deps = deps
  }

  /** Runs one step; it may wait for an approval. @throws NodeError */
  async ask(step: FileStep): Promise<FileAnswer> {
    return this.#answer(await this.#call(step), step)
  }

  /** Runs a step that changes nothing when it comes twice; tries it again while the link is cut. @throws NodeError */
  async repeat(step: FileStep): Promise<FileAnswer> {
    for (const pauseMs of [...PAUSES_MS, null]) {
      try {
        return this.#answer(await this.#call(step), step)
      } catch (error) {
        if (pauseMs === null || !(error instanceof NodeError) || !PASSING.has(error.code)) throw error
        await delay(pauseMs, undefined, { signal: this.#deps.signal })
      }
    }
    throw new NodeError('INTERNAL', 'a step has no last try')
  }

  async #call([capability, input]: FileStep): Promise<Reply> {
    const { context, address, level, signal, timeoutMs, justification } = this.#deps
    const params = {
      agent: address.agent,
      capability,
      input,
      timeoutMs: timeoutMs ?? (capability === 'files.write' ? APPROVAL_STEP_MS : STEP_MS),
      ...given({ justification }),
      // The bytes of a file have no place in the ledger; a write is recorded all the same.
      record: false
    }
    const shownLevel = level === 'quiet' ? 'quiet' : 'needed'
    return await followCall(context, { name: 'message.call', params, signal, level: shownLevel })
  }

  #answer(reply: Reply, [capability]: FileStep): FileAnswer {
    const { agent, outcome, payload } = reply
    if (outcome === 'COMPLETED' && isRecord(payload)) return new FileAnswer(payload, agent)
    if (outcome === 'COMPLETED') throw unexpected(agent, capability)
    const error = reply.error ?? new NodeError('TIMEOUT', `no answer of ${agent} yet`).toBody()
    const next = timeoutSteps({ ...reply, error }, { name: '--timeout', givenMs: this.#deps.timeoutMs })
    throw this.#errorOf(next === null ? error : { ...error, next }, capability)
  }

  /** The error of the command for one of the agent. */
  #errorOf(error: ErrorBody, capability: string): NodeError {
    const { context, address } = this.#deps
    const { key, reason } = isRecord(error.data) ? error.data : {}
    if (error.code === 'FORBIDDEN' && typeof key === 'string')
      return new NodeError('FORBIDDEN', `${address.node}: ${error.message}`, {
        next: [configThere(address)]
      })
    if (reason === 'exists') {
      const again = context.output.typed
      const next = again === null ? [] : [`${again} --force`]
      return new NodeError('FILE_EXISTS', `the target exists on ${address.node}; --force replaces it`, {
        next
      })
    }
    if (error.code !== 'TASK_FAILED') return NodeError.fromBody(error)
    return new NodeError('TASK_FAILED', `${address.node}: ${error.message}`, {
      data: error.data,
      next: [isReading(capability) ? `a2a-node files ls ${shellWord(address.node)}:` : configThere(address)]
    })
  }
}

/** An answer of another node, whose members are checked as they are read. */
export class FileAnswer {
  /** `files@desktop`, by its shown name. */
  readonly agent: string
  readonly #members: Readonly<Record<string, unknown>>

  constructor(members: Readonly<Record<string, unknown>>, agent: string) {
    this.#members = members
    this.agent = agent
  }

  /** A text. @throws NodeError INVALID_OUTPUT */
  text(name: string): string {
    const value = this.#members[name]
    if (typeof value !== 'string') throw unexpected(this.agent, name)
    return value
  }

  /** A number of bytes. @throws NodeError INVALID_OUTPUT */
  bytes(name: string): number {
    const value = this.#members[name]
    if (!Number.isSafeInteger(value) || (value as number) < 0) throw unexpected(this.agent, name)
    return value as number
  }

  /** Is the member true? */
  is(name: string): boolean {
    return this.#members[name] === true
  }

  /** The objects of a list. @throws NodeError INVALID_OUTPUT */
  list(name: string): readonly FileAnswer[] {
    const value = this.#members[name]
    if (!Array.isArray(value)) throw unexpected(this.agent, name)
    return value.filter(isRecord).map((one) => new FileAnswer(one, this.agent))
  }
}

function isReading(capability: string): boolean {
  return capability !== 'files.write' && capability !== 'files.append'
}

function configThere({ node }: FileAddress): string {
  return `a2a-node config path   # on ${shown(node)}`
}

function unexpected(agent: string, name: string): NodeError {
  const reason = `${agent} answers without ${name}: its node may run an earlier build`
  return new NodeError('INVALID_OUTPUT', reason, { next: [`a2a-node agents show ${shellWord(agent)}`] })
}
