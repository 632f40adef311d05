import { unwatchFile, watchFile } from 'node:fs'
import fs from 'node:fs/promises'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { messageOf, NodeError } from '../../../kit/errors.js'
import { shellWord } from '../../../kit/text.js'
import type { PolicyFaults, PolicySource, PolicyState, WrittenRule } from '../../../ports/policy.js'
import { readIfThere, replaceFile } from '../home/atomic-file.js'
import { insertRule } from './policy-edit.js'
import { MAX_POLICY_BYTES, readPolicy } from './policy-text.js'
import { storeError } from '../home/store-errors.js'

/** How often the file is looked at, in milliseconds. */
const LOOK_MS = 250
/**
 * A file that changed is read when it has stood still for so long, in milliseconds: half a list of rules is a list too.
 */
const SETTLE_MS = 100
/** So often at most; then it is taken as it is. */
const MAX_LOOKS = 20

/** How the file is watched. */
export interface PolicyFileOptions {
  /** Absolute path. */
  readonly file: string
  /** Absolute path of an empty file of the node's own: it stands there once this node had a policy file. */
  readonly seen: string
  /** Of a home that is in no mesh yet: it gets {@link FIRST_RULES}. */
  readonly isNew: boolean
  log(level: 'info' | 'warn' | 'error', message: string, fields: Readonly<Record<string, unknown>>): void
}

/**
 * Opens the policy file. One that is not there means no rules, unless this node had one before: then its rules are
 * unknown.
 * @throws NodeError CONFIG_INVALID naming file and line, or that it is gone; NO_PERMISSION, DISK_FULL.
 */
export async function openPolicyFile(options: PolicyFileOptions): Promise<PolicySource> {
  const { file, log } = options
  const text = (await readText(file)) ?? (await firstRules(options))
  if (text !== null) await remember(options)
  else if ((await readIfThere(options.seen)) !== null) {
    log('error', 'the policy file is gone: its rules are unknown', { file })
    throw new NodeError(
      'CONFIG_INVALID',
      `${file}: the policy file of this node is gone; without it, denied messages would be allowed`,
      {
        next: [
          `ls -l ${shellWord(file)}   # bring the file back`,
          `touch ${shellWord(file)}   # or go on without rules: an empty file`
        ]
      }
    )
  }
  const reading = readPolicy(text ?? '')
  if (reading.ok) return new PolicyFile(options, { text, state: { file, rules: reading.rules, faults: null } })
  throw broken(file, reading.faults)
}

/** The rules of a new home. */
export const FIRST_RULES = `# The rules of this node; the first match decides. Written when its home was made: change it as you like.
# A peer is mine or a guest by its invite (--mine, --guest), and by: a2a-node peers trust <peer> mine|guest
rules:
  # Guests may read and ask. What writes or executes waits for you: a2a-node approvals
  - name: guests-ask
    from: { trust: guest }
    sideEffect: [write, exec]
    decision: ask
`

/** Writes the rules of a new home, and gives them; null: the home is none, or had rules. */
async function firstRules({ file, seen, isNew }: PolicyFileOptions): Promise<string | null> {
  if (!isNew || (await readIfThere(seen)) !== null) return null
  try {
    await fs.mkdir(path.dirname(file), { recursive: true, mode: 0o700 })
    await replaceFile(file, FIRST_RULES)
    return FIRST_RULES
  } catch (error) {
    const { code, message, next } = storeError(error, path.dirname(file))
    throw new NodeError(code, `the rules of a new home cannot be written to ${file}: ${message}`, {
      cause: error,
      next: [...next, `touch ${shellWord(file)}   # or start without rules: an empty file`]
    })
  }
}

/** One fault is the message; a list of several is in the data. */
function broken(file: string, { list, more }: PolicyFaults): NodeError {
  const [first] = list
  const place = placeOf(file, first?.line ?? null)
  const count = list.length + more
  const message = count > 1 ? `${file}: ${count} faults` : `${place}: ${first?.reason ?? 'it is broken'}`
  return new NodeError('CONFIG_INVALID', message, {
    data: { file, faults: list, moreFaults: more },
    next: [`less +${first?.line ?? 1} ${shellWord(file)}   # the policy file; mend it, then start again`]
  })
}

/** A file that is gone at the next start is then told from one that never was. */
async function remember({ seen }: PolicyFileOptions): Promise<void> {
  if ((await readIfThere(seen)) !== null) return
  try {
    await replaceFile(seen, '')
  } catch (error) {
    throw storeError(error, path.dirname(seen))
  }
}

function placeOf(file: string, line: number | null): string {
  return line === null ? file : `${file}:${line}`
}

async function readText(file: string): Promise<string | null> {
  try {
    const text = await readIfThere(file)
    if (text === null) await refuseBrokenLink(file)
    if (text !== null && Buffer.byteLength(text) > MAX_POLICY_BYTES)
      throw new NodeError('CONFIG_INVALID', `${file}: larger than ${MAX_POLICY_BYTES} bytes`, {
        next: [`ls -l ${shellWord(file)}`]
      })
    return text
  } catch (error) {
    if (error instanceof NodeError) throw error
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EACCES' || code === 'EPERM')
      throw new NodeError('NO_PERMISSION', `may not read the policy file ${file}`, { cause: error })
    throw new NodeError('CONFIG_INVALID', `${file}: cannot be read: ${messageOf(error)}`, {
      cause: error,
      next: [`ls -l ${shellWord(file)}`]
    })
  }
}

/** Its rules are unknown, and a first policy would take its place. @throws NodeError CONFIG_INVALID */
async function refuseBrokenLink(file: string): Promise<void> {
  const target = await fs.readlink(file).catch(() => null)
  if (target === null) return
  throw new NodeError('CONFIG_INVALID', `${file}: it is a link to ${target}, which is not there`, {
    next: [`ls -l ${shellWord(file)}   # bring its target back, or remove the link`]
  })
}

class PolicyFile implements PolicySource {
  readonly #options: PolicyFileOptions
  #text: string | null
  #state: PolicyState
  #onChange: (state: PolicyState) => void = () => {}
  /** Looks and writes run one after the other. */
  #busy: Promise<unknown> = Promise.resolve()
  #isClosed = false

  constructor(
    options: PolicyFileOptions,
    { text, state }: { readonly text: string | null; readonly state: PolicyState }
  ) {
    this.#options = options
    this.#text = text
    this.#state = state
  }

  state(): PolicyState {
    return this.#state
  }

  watch(onChange: (state: PolicyState) => void): void {
    this.#onChange = onChange
    watchFile(this.#options.file, { interval: LOOK_MS, persistent: false }, this.#look)
    this.#look()
  }

  refresh(): Promise<PolicyState> {
    return this.#inTurn(async () => {
      await this.#scan()
      return this.#state
    })
  }

  insert(
    rule: Parameters<PolicySource['insert']>[0],
    place: Parameters<PolicySource['insert']>[1]
  ): Promise<WrittenRule> {
    return this.#inTurn(async () => {
      await this.#scan()
      const { faults } = this.#state
      if (faults !== null || this.#text === null) {
        const [fault] = faults?.list ?? []
        const where = placeOf(this.#options.file, fault?.line ?? null)
        const next = ['a2a-node policy show']
        throw new NodeError(
          'CONFIG_INVALID',
          `the policy file cannot be used: ${where}: ${fault?.reason ?? 'it is not there'}`,
          { next }
        )
      }
      const { whole, line, text } = insertRule(this.#text, { rule, ...place })
      await this.#write(whole)
      this.#take(whole)
      return { line, text }
    })
  }

  close(): void {
    this.#isClosed = true
    unwatchFile(this.#options.file, this.#look)
  }

  readonly #look = (): void => {
    this.refresh().catch((error: unknown) =>
      this.#options.log('warn', 'the policy file cannot be read', { reason: messageOf(error) })
    )
  }

  #inTurn<T>(run: () => Promise<T>): Promise<T> {
    const turn = this.#busy.then(run)
    this.#busy = turn.catch(() => {})
    return turn
  }

  async #write(text: string): Promise<void> {
    const { file } = this.#options
    try {
      // A link stays one: what it leads to is replaced.
      await replaceFile(await fs.realpath(file), text)
    } catch (error) {
      throw storeError(error, path.dirname(file))
    }
  }

  async #scan(): Promise<void> {
    if (this.#isClosed) return
    try {
      const text = await this.#settled()
      if (text !== null && this.#text === null) await remember(this.#options)
      if (text !== this.#text || this.#state.faults !== null) this.#take(text)
    } catch (error) {
      // The display adds the name of the file.
      const lead = `${this.#options.file}: `
      const reason = messageOf(error)
      this.#fail(oneFault(reason.startsWith(lead) ? reason.slice(lead.length) : reason))
    }
  }

  /** The text once it is the same twice: a new one may be half written. */
  async #settled(): Promise<string | null> {
    let text = await readText(this.#options.file)
    for (let looks = 0; looks < MAX_LOOKS && text !== this.#text; looks++) {
      await delay(SETTLE_MS)
      const again = await readText(this.#options.file)
      if (again === text) break
      text = again
    }
    return text
  }

  #take(text: string | null): void {
    // A missing file may be in the middle of a move. Treating it as empty would allow everything.
    if (text === null && this.#text !== null)
      return this.#fail(oneFault('the file is gone; an empty one means no rules'))
    const reading = readPolicy(text ?? '')
    if (!reading.ok) return this.#fail(reading.faults)
    this.#text = text
    const { file } = this.#options
    this.#state = { file, rules: reading.rules, faults: null }
    this.#options.log('info', 'the policy was read', { rules: reading.rules.length })
    this.#onChange(this.#state)
  }

  /** The rules of the last good version stay in force. */
  #fail(faults: PolicyFaults): void {
    if (JSON.stringify(faults) === JSON.stringify(this.#state.faults)) return
    this.#state = { ...this.#state, faults }
    const [first] = faults.list
    const fields = { ...first, more: faults.list.length - 1 + faults.more }
    this.#options.log('warn', 'the policy file cannot be used; its last good version stays in force', fields)
    this.#onChange(this.#state)
  }
}

function oneFault(reason: string): PolicyFaults {
  return { list: [{ line: null, reason }], more: 0 }
}
