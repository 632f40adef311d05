/** An error that a package threw where nobody could catch it. */
export interface PackageFault {
  readonly package: string
  readonly error: Error
}

const MISTAKES = [TypeError, SyntaxError, ReferenceError, EvalError, RangeError, URIError]

/** Is it what the packages of the network take for a mistake in a program, and throw again in a task of its own, where nobody can catch it? */
export function isMistake(error: unknown): error is Error {
  if (!(error instanceof Error)) return false
  return MISTAKES.some((kind) => error instanceof kind) || error.name === 'AssertionError'
}
