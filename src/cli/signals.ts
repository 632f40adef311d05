import { EXIT } from './exit-codes.js'

/** Signals that end a process in order, and the exit codes they give. */
const CODES = { SIGINT: EXIT.interrupted, SIGTERM: EXIT.terminated, SIGHUP: EXIT.hangup } as const

/** The wish of a person or a supervisor that this process ends. */
export interface StopSignals {
  /** Resolves with the exit code of the first signal. A second signal ends the process at once. */
  readonly first: Promise<number>
  /** Stops listening. */
  release(): void
}

/** Listens for SIGINT, SIGTERM and SIGHUP. With `onHangup` each SIGHUP calls it and ends nothing. */
export function stopSignals(onHangup?: () => void): StopSignals {
  let tell: (code: number) => void = () => {}
  let isAsked = false
  const first = new Promise<number>((resolve) => (tell = resolve))
  const listener = (signal: NodeJS.Signals): void => {
    const code = CODES[signal as keyof typeof CODES]
    if (isAsked) process.exit(code)
    isAsked = true
    tell(code)
  }
  const names = Object.keys(CODES) as (keyof typeof CODES)[]
  const listeners = names.map(
    (name) => [name, name === 'SIGHUP' && onHangup !== undefined ? onHangup : listener] as const
  )
  for (const [name, one] of listeners) process.on(name, one)
  return { first, release: () => listeners.forEach(([name, one]) => process.off(name, one)) }
}
