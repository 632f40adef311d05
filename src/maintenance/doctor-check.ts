/** The result of one check. */
export interface DoctorCheck {
  readonly name: string
  readonly result: 'ok' | 'warn' | 'fail'
  readonly text: string
  /** Commands to type; empty for a good result. */
  readonly next: readonly string[]
}

/** All is well. */
export function good(name: string, text: string): DoctorCheck {
  return { name, result: 'ok', text, next: [] }
}

/** Something is not. */
export function bad(name: string, text: string, next: readonly string[]): DoctorCheck {
  return { name, result: 'fail', text, next }
}

/** Something may become so. */
export function doubtful(name: string, text: string, next: readonly string[]): DoctorCheck {
  return { name, result: 'warn', text, next }
}
