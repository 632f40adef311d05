import type { Verdict } from '../run-case.js'

/** What each client does, in this order: later checks use the task of `send`. */
export const CHECKS = ['card', 'send', 'stream', 'get', 'cancel', 'list', 'turns', 'push', 'errors'] as const
/** One of them. */
export type CheckName = (typeof CHECKS)[number]

/** What a client asks. */
export interface ClientTarget {
  /** URL of the agent `acts`. */
  readonly url: string
  readonly token: string
  /** A URL for notifications. */
  readonly hook: string
}

/** A foreign client. */
export interface ForeignClient {
  readonly name: string
  /** Its bindings, as cards name them. */
  readonly transports: readonly ('JSONRPC' | 'HTTP+JSON')[]
  /** Checks that its protocol lacks, with the reason. */
  readonly lacks: Readonly<Partial<Record<CheckName, string>>>
  /** Makes it ready. Why it cannot run here; null: it can. */
  prepare(): Promise<string | null>
  /** Does the checks. One that has no verdict failed. */
  run(target: ClientTarget, transport: 'JSONRPC' | 'HTTP+JSON'): Promise<ReadonlyMap<string, Verdict>>
}

/** Fails unless two values are the same JSON. */
export function same(found: unknown, wanted: unknown): void {
  const [one, other] = [JSON.stringify(found), JSON.stringify(wanted)]
  if (one !== other) throw new Error(`${one} is not ${other}`)
}

/** Fails unless a call fails with an error of that class. */
export async function fails(call: Promise<unknown>, name: string): Promise<void> {
  const error = await call.then(
    () => null,
    (fault: unknown) => (fault instanceof Error ? fault : new Error(String(fault)))
  )
  if (error === null) throw new Error(`no ${name}`)
  if (error.name !== name && error.constructor.name !== name) throw new Error(`${error.name} is no ${name}`)
}

/** Does checks that are functions. */
export async function doChecks(
  checks: Readonly<Partial<Record<CheckName, () => Promise<void>>>>
): Promise<ReadonlyMap<string, Verdict>> {
  const verdicts = new Map<string, Verdict>()
  for (const name of CHECKS) {
    const check = checks[name]
    if (check === undefined) continue
    const verdict = await check().then(
      (): Verdict => ({ state: 'passed' }),
      (error: unknown): Verdict => ({ state: 'failed', why: error instanceof Error ? error.message : String(error) })
    )
    verdicts.set(name, verdict)
  }
  return verdicts
}
