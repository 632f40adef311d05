import { type ChildProcess, spawn } from 'node:child_process'
import { messageOf } from '../../kit/errors.js'
import { shortId } from '../../kit/ids.js'
import { shown } from '../../kit/text.js'
import type { Problem } from '../../ports/node-api.js'
import type { ApprovalInfo } from '../../ports/policy-api.js'
import type { Telemetry } from '../../ports/telemetry.js'

/** Programs for notices that run at once. */
export const MAX_NOTIFIERS = 4
/** Notices that wait for them; further ones are dropped. */
export const MAX_WAITING_NOTICES = 64
/** How long a program runs, in milliseconds; then its process group is killed. */
export const NOTIFY_TIMEOUT_MS = 10_000
/** Characters of a text on the desktop, and of one sender or agent in it. */
const TEXT_MAX = 240
const NAME_MAX = 80

/** Dependencies of {@link ApprovalNotifier}. */
export interface ApprovalNotifierDeps {
  /** `policy.notify`. */
  readonly how: 'desktop' | readonly string[] | null
  readonly platform: string
  readonly telemetry: Pick<Telemetry, 'log'>
  readonly timeoutMs?: number
}

/** A program with its arguments, and its standard input. */
interface Notice {
  readonly argv: readonly string[]
  readonly text: string
  readonly json: string
}

/**
 * Gives the owner a notice of each new pending approval: by a program, without a shell, or on the desktop. The program
 * gets the approval as one line of JSON on its standard input, and a short text as `A2A_NODE_APPROVAL`.
 */
export class ApprovalNotifier {
  readonly #deps: ApprovalNotifierDeps
  readonly #waiting: Notice[] = []
  readonly #running = new Set<ChildProcess>()
  #problem: Problem | null = null
  #isClosed = false

  constructor(deps: ApprovalNotifierDeps) {
    this.#deps = deps
  }

  /** Gives notice of an approval. Never throws. */
  notify(approval: ApprovalInfo): void {
    const { how, platform } = this.#deps
    if (how === null || this.#isClosed) return
    const text = noticeText(approval)
    const argv = how === 'desktop' ? desktopArgv(platform, text) : how
    if (argv === null) return this.#failed(`desktop notices are not known on ${platform}`)
    if (this.#waiting.length >= MAX_WAITING_NOTICES) return this.#failed('too many notices at once; some were dropped')
    this.#waiting.push({ argv, text, json: `${JSON.stringify(approval)}\n` })
    this.#next()
  }

  /** The fault of the last notice, until one succeeds. */
  problems(): readonly Problem[] {
    return this.#problem === null ? [] : [this.#problem]
  }

  /** Ends all programs; later notices are ignored. */
  close(): void {
    this.#isClosed = true
    this.#waiting.length = 0
    for (const child of this.#running) killGroup(child)
  }

  #next(): void {
    if (this.#running.size >= MAX_NOTIFIERS) return
    const notice = this.#waiting.shift()
    if (notice !== undefined) this.#run(notice)
  }

  #run({ argv: [program = '', ...args], text, json }: Notice): void {
    try {
      const child = spawn(program, args, {
        stdio: ['pipe', 'ignore', 'ignore'],
        env: { ...process.env, A2A_NODE_APPROVAL: text },
        shell: false,
        detached: true
      })
      this.#follow(child, program)
      // A program need not read its input.
      child.stdin.on('error', () => {})
      child.stdin.end(json)
    } catch (error) {
      this.#failed(`${shown(program)}: ${messageOf(error)}`)
      this.#next()
    }
  }

  #follow(child: ChildProcess, program: string): void {
    const timeoutMs = this.#deps.timeoutMs ?? NOTIFY_TIMEOUT_MS
    let fault: string | null = null
    const timer = setTimeout(() => {
      fault = `ran for more than ${timeoutMs / 1000} s`
      killGroup(child)
    }, timeoutMs)
    this.#running.add(child)
    const end = (why: string | null): void => {
      if (!this.#running.delete(child)) return
      clearTimeout(timer)
      if (this.#isClosed) return
      if (why === null) this.#problem = null
      else this.#failed(`${shown(program)} ${why}`)
      this.#next()
    }
    child.once('error', (error) => end(`cannot be run: ${messageOf(error)}`))
    child.once('exit', (code, signal) =>
      end(code === 0 ? null : (fault ?? `failed with ${code ?? signal ?? 'a fault'}`))
    )
  }

  #failed(reason: string): void {
    const hint =
      this.#deps.how === 'desktop' && this.#deps.platform === 'linux' ? ' (notify-send is part of libnotify)' : ''
    const message = `no notice of a pending approval: ${reason}${hint}`
    this.#problem = { code: 'NOTIFY_FAILED', message, next: 'a2a-node approvals ls' }
    this.#deps.telemetry.log('warn', 'no notice of a pending approval', { reason })
  }
}

/** The program of the desktop's notices; null: none is known. A text is one argument, never a part of a script. */
export function desktopArgv(platform: string, text: string): readonly string[] | null {
  // Servers of notices read markup in the text.
  const plain = shown(text.replace(/[<>&]/g, ' '), TEXT_MAX)
  if (platform === 'linux') return ['notify-send', '--app-name=a2a-node', '--', 'Approval needed', plain]
  if (platform !== 'darwin') return null
  const script = ['on run argv', 'display notification (item 2 of argv) with title (item 1 of argv)', 'end run']
  return ['osascript', ...script.flatMap((line) => ['-e', line]), 'Approval needed', plain]
}

function noticeText({ id, from, fromNode, to, capability, type, sideEffect }: ApprovalInfo): string {
  const effect = sideEffect === null ? '' : ` (${sideEffect})`
  const sender = `${shown(from, NAME_MAX)} (${shortId(fromNode.id)})`
  return `${sender} asks ${shown(to, NAME_MAX)} for ${shown(capability ?? type, NAME_MAX)}${effect}: a2a-node approvals show ${id}`
}

function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // All of it has ended.
  }
}
